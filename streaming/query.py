"""The one place that wires the graph: source, stateful operator, sink, figures."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout

from connectors.history.schema import Row
from connectors.history.topics import HistoryTopics
from connectors.kafka.dead_letter import DeadLetterWriter
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import (
    DEAD_LETTER_TOPIC,
    KafkaRefused,
    KafkaSettings,
    KafkaUnreachable,
    TopicMissing,
)
from connectors.lock import locked
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.channel_table import ChannelTable
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.kinds import AnyProtocol
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.report import build_report
from streaming.board import Board
from streaming.details import DetailStore
from streaming.files import write_atomically
from streaming.fold import OUTPUT_SCHEMA, STATE_SCHEMA, make_fold
from streaming.history import (
    HistoryExporter,
    HistorySettings,
    find_incidents,
    find_minutes,
)
from streaming.incidents import IncidentStore
from streaming.labels import open_ledgers
from streaming.outbox import Outbox, open_findings
from streaming.prime import read_position, read_totals
from streaming.progress import COMMIT_GROUP, Progress
from streaming.sink import Sink
from streaming.source import FORMAT, SourceSettings, make_source

_log = logging.getLogger("sds-monitor")

QUERY_NAME = "sds-monitor"
LABEL_BUDGET = 200

_GLANCE_S = 5.0
"""How long Kafka is waited for each second, to tell how far behind the job is: as long
as that the job cannot be ended."""

_HISTORY_ATTEMPT_S = 10.0
"""For one write to the history's topics: it is repeated anyway, and the end waits."""

_STOP_S = 10.0
"""For Spark to end what it is doing; what it has not committed is done again."""


@dataclass(frozen=True, slots=True)
class JobSettings:
    """One job.

    Attributes:
        source: What is read and how.
        checkpoint: Directory of the checkpoint; our own files lie in ``monitor/``
            in it.
        trigger_s: Shortest time between two batches, seconds.
        until_caught_up: End when all that the topic holds at the start is read.
        report_detail: Keep every definite acknowledgement.
        label_budget: How many channels have a metric label of their own.
        dead_letter_topic: Where undecodable records go; None to only count them.
        group: Consumer group to which offsets are committed; None for no commits.
        history: Where incidents and minutes of channels last; None to keep only the
            incidents, beside the checkpoint.
        channel_table: What the operator says of channels, at the start.
        protocols: The protocols that the job observes.
    """

    source: SourceSettings
    checkpoint: Path
    trigger_s: float = 1.0
    until_caught_up: bool = False
    report_detail: bool = False
    label_budget: int = LABEL_BUDGET
    dead_letter_topic: str | None = DEAD_LETTER_TOPIC
    group: str | None = COMMIT_GROUP
    history: HistorySettings | None = None
    channel_table: ChannelTable = field(default_factory=ChannelTable)
    protocols: tuple[AnyProtocol, ...] = PROTOCOLS

    @property
    def own_files(self) -> Path:
        """Directory of what is kept beside Spark's own checkpoint."""
        return self.checkpoint / "monitor"


class CheckpointMismatch(ValueError):
    """The checkpoint was begun with other settings."""


class CheckpointUnwritable(OSError):
    """The checkpoint's directory cannot be made or written to.

    Attributes:
        checkpoint: Its directory.
    """

    def __init__(self, checkpoint: Path, reason: str) -> None:
        self.checkpoint = checkpoint
        super().__init__(
            f"checkpoint {checkpoint} cannot be written to ({reason}): use a "
            "directory of your own as --checkpoint"
        )


class CheckpointInUse(RuntimeError):
    """Another job runs on the checkpoint.

    Attributes:
        checkpoint: Its directory.
    """

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        super().__init__(
            f"another job runs on checkpoint {checkpoint}: end it, or use another "
            "--checkpoint"
        )


class JobFailed(RuntimeError):
    """The query ended with an error.

    Attributes:
        cause: The error in one line, as raised in our own code where it was.
        unreachable: Whether Kafka could not be reached any more.
    """

    def __init__(self, cause: str, unreachable: bool = False) -> None:
        self.cause = cause
        self.unreachable = unreachable
        super().__init__(cause)


@dataclass
class Job:
    """A running job.

    Attributes:
        settings: As given.
        board: The newest figures.
        query: Spark's.
        progress: Of the query.
        incidents: Of the checkpoint; with a history the latest alone.
        outbox: What is on its way into the history.
        details: Definite acknowledgements; None if the checkpoint keeps none.
    """

    settings: JobSettings
    board: Board
    query: StreamingQuery
    progress: Progress
    incidents: IncidentStore
    outbox: Outbox
    details: DetailStore | None = field(default=None)

    @property
    def has_begun(self) -> bool:
        """True: incidents and minutes can be found."""
        return True

    def wait(self, seconds: float) -> bool:
        """Wait for the end at most so long; returns whether the job has ended.

        Raises:
            JobFailed: It ended with an error.
        """
        try:
            ended = bool(self.query.awaitTermination(max(1, round(seconds))))
        except StreamingQueryException as error:
            failure = _failure_of(error)
            self.board.set_job(running=False, error=failure.cause)
            raise failure from error
        self.progress.update(self.query)
        return ended

    def find_incidents(self, query: IncidentQuery) -> list[ChannelIncident]:
        """Incidents since the checkpoint was begun; see `history.find_incidents`."""
        return find_incidents(self.incidents, self.settings.history, query)

    def find_minutes(
        self,
        channel: str,
        since_ms: int,
        until_ms: int,
        fields: Collection[str] | None = None,
    ) -> list[Row]:
        """A channel's minutes; see `history.find_minutes`."""
        return find_minutes(
            self.outbox, self.settings.history, channel, since_ms, until_ms, fields
        )

    def set_channel_table(self, table: ChannelTable) -> None:
        """Take over what the operator says of channels now.

        Names, objectives and silence change at once; labels are given when a channel
        is first seen, and stay.
        """
        self.board.set_table(table)

    def report(self, generated_at_ms: int) -> dict[str, Any]:
        """The report as of now; see `build_report`."""
        details = incidents = None
        if self.details is not None and self.settings.report_detail:
            details = self.details.latencies()
            incidents = self.find_incidents(IncidentQuery())
        snapshot = judge_blindness(self.board.snapshot)
        return build_report(snapshot, generated_at_ms, details, incidents)


@contextmanager
def running_job(
    spark: SparkSession, settings: JobSettings, board: Board | None = None
) -> Iterator[Job]:
    """Start a job, and stop it at the end of the block.

    Args:
        spark: Runs it.
        settings: Of the job.
        board: Where its figures are to hang; None for a new one.

    Raises:
        CheckpointInUse: Another job runs on the checkpoint.
        CheckpointMismatch: It was begun for another topic, or without detail.
        CheckpointUnwritable: Its directory cannot be written to.
        connectors.kafka.settings.KafkaUnreachable: No broker answered.
        connectors.kafka.settings.TopicMissing: The topic does not exist.
        streaming.history.HistoryInUse: Another job writes to its history.
        streaming.history.HistoryUnwritable: The history cannot be written to.
    """
    with _lock(settings), _offsets(settings.source.kafka, _GLANCE_S) as offsets:
        # Asked first, so that a wrong address fails here with a plain error.
        with _offsets(settings.source.kafka) as first:
            first.partitions()
        begun = _note_start(settings)
        board = Board(settings.protocols) if board is None else board
        board.set_table(settings.channel_table)
        board.set_job(restarts=begun.starts - 1, version=version("sds-monitor"))
        kinds = kinds_of(settings.protocols)
        ledgers = open_ledgers(settings.own_files, kinds, settings.label_budget)
        source = settings.source
        dead_letters = None
        if settings.dead_letter_topic is not None:
            dead_letters = DeadLetterWriter(
                source.kafka, source.client, settings.dead_letter_topic
            )
        incidents, outbox = open_findings(
            settings.own_files / "incidents.sqlite", time.time_ns() // 1_000
        )
        details = None
        if begun.report_detail:
            details = DetailStore(settings.own_files / "acknowledgements.sqlite")
        # What nobody is to have is not kept for anybody.
        minutes = None if settings.history is None else outbox
        sink = Sink(
            board,
            ledgers,
            dead_letters,
            incidents,
            minutes,
            details,
            settings.protocols,
        )
        position = read_position(settings.checkpoint)
        # Before the totals are shown: a counter of the job that began at 0 and then
        # went on where it was would be taken for growth.
        if position is not None:
            board.set_position(position)
        if minutes is not None:
            board.set_job(history_pending=len(minutes))
        sink.show(read_totals(spark, settings.checkpoint, kinds))
        with _exporting(settings, outbox, incidents, board) as exporter:
            query = _start(spark, settings, sink, with_details=details is not None)
            progress = Progress(board, offsets, settings.group, position, minutes)
            board.set_job(running=True)
            try:
                yield Job(settings, board, query, progress, incidents, outbox, details)
            finally:
                if exporter is not None and query.isActive:
                    # It ends because somebody asked for it.
                    exporter.hurry()
                _stop(spark, query)
                if dead_letters is not None:
                    dead_letters.close()
                board.set_job(running=False)


def _exporting(
    settings: JobSettings, outbox: Outbox, incidents: IncidentStore, board: Board
) -> AbstractContextManager[HistoryExporter | None]:
    """Carries findings into the history while the block runs, if there is one."""
    history = settings.history
    if history is None:
        return nullcontext()
    topics = None
    if history.has_topics:
        topics = HistoryTopics(
            _within(settings.source.kafka, _HISTORY_ATTEMPT_S),
            history.incidents_topic,
            history.minutes_topic,
            retention_ms=history.days * 86_400_000,
        )
    return HistoryExporter(
        history, outbox, incidents, topics, lambda: board.snapshot.clock_ms
    )


def _start(
    spark: SparkSession, settings: JobSettings, sink: Sink, with_details: bool
) -> StreamingQuery:
    spark.dataSource.register(make_source(settings.protocols))
    rows = (
        spark.readStream.format(FORMAT)
        .options(**settings.source.to_options())
        .load()
        .withWatermark("event_time", "1 millisecond")
        .groupBy("key")
        .applyInPandasWithState(
            make_fold(with_details=with_details, protocols=settings.protocols),
            OUTPUT_SCHEMA,
            STATE_SCHEMA,
            "update",
            GroupStateTimeout.EventTimeTimeout,
        )
    )
    writer = (
        rows.writeStream.queryName(QUERY_NAME)
        .outputMode("update")
        .option("checkpointLocation", str(settings.checkpoint))
        .foreachBatch(sink)
    )
    if settings.until_caught_up:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.trigger_s:g} seconds").start()


def _stop(spark: SparkSession, query: StreamingQuery) -> None:
    """End a query; a batch that waits for Kafka is given up after a while."""
    spark.conf.set("spark.sql.streaming.stopTimeout", f"{_STOP_S:.0f}s")
    try:
        query.stop()
    except Py4JJavaError as error:
        if "java.util.concurrent.TimeoutException" not in str(error):
            raise
        _log.warning("the last batch did not end: it is done again at the next start")


@contextmanager
def _lock(settings: JobSettings) -> Iterator[None]:
    with ExitStack() as held:
        try:
            held.enter_context(locked(settings.own_files / "lock"))
        except BlockingIOError:
            raise CheckpointInUse(settings.checkpoint) from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise CheckpointUnwritable(settings.checkpoint, reason) from error
        yield


@contextmanager
def _offsets(
    kafka: KafkaSettings, most_s: float = float("inf")
) -> Iterator[TopicOffsets]:
    offsets = TopicOffsets(_within(kafka, most_s))
    try:
        yield offsets
    finally:
        offsets.close()


def _within(kafka: KafkaSettings, most_s: float) -> KafkaSettings:
    """The same cluster, waited for no longer than so many seconds."""
    return replace(kafka, timeout_s=min(kafka.timeout_s, most_s))


class Begun(msgspec.Struct):
    """What a checkpoint was begun with, kept beside it.

    Attributes:
        topic: The topic of frames.
        report_detail: Whether definite acknowledgements are kept.
        starts: How often a job was started on it.
    """

    topic: str
    report_detail: bool
    starts: int = 0


def _note_start(settings: JobSettings) -> Begun:
    """Check what the checkpoint was begun with, and count the start."""
    path = settings.own_files / "job.json"
    topic = settings.source.kafka.topic
    if path.exists():
        begun = msgspec.json.decode(path.read_bytes(), type=Begun)
    else:
        begun = Begun(topic, settings.report_detail)
    if begun.topic != topic:
        message = (
            f"checkpoint {settings.checkpoint} was begun on topic {begun.topic}, "
            f"not {topic}: use another --checkpoint or --topic"
        )
        raise CheckpointMismatch(message)
    if settings.report_detail and not begun.report_detail:
        message = (
            f"checkpoint {settings.checkpoint} was begun without --report-detail, "
            "which must be given from the first start: use another --checkpoint"
        )
        raise CheckpointMismatch(message)
    begun.starts += 1
    write_atomically(path, msgspec.json.encode(begun).decode())
    return begun


_PYTHON_ERROR = re.compile(
    r"^[A-Za-z_][\w.]*(?:Error|\w+): (?P<text>\S.*)$", re.MULTILINE
)
_OWN_ERROR = re.compile(
    r"^(?:connectors|sds_core|streaming)[\w.]*\.(?P<name>\w+): (?P<text>\S.*)$",
    re.MULTILINE,
)
_UNREACHABLE = {
    KafkaRefused.__name__,
    KafkaUnreachable.__name__,
    TopicMissing.__name__,
}


def _failure_of(error: StreamingQueryException) -> JobFailed:
    """The error that Spark's long text is about, in one line.

    One of our own says what to do; else the first error that Python raised.
    """
    text = str(error)
    own = _OWN_ERROR.search(text)
    if own is not None:
        return JobFailed(own["text"], own["name"] in _UNREACHABLE)
    raised = _PYTHON_ERROR.search(text)
    return JobFailed(raised[0] if raised else text.strip().splitlines()[0])
