"""One job: connects source, fold, sink, history and figures, and runs the query."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout

from connectors.history.schema import CHANNEL_TABLES, KindTables, figures_of
from connectors.history.topics import HistoryTopics
from connectors.kafka.dead_letter import DeadLetterWriter
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaSettings
from sds_core import compiled
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.incidents import IncidentQuery
from sds_core.observer.kinds import AnyProtocol
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.report import build_report
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.settings_table import settings_of
from sds_core.observer.snapshot import Snapshot
from streaming.batch_log import complete, read_batch_log
from streaming.board import Board
from streaming.checkpoint import locked_checkpoint, own_files
from streaming.damage import VIEWS
from streaming.details import DetailStore
from streaming.executors import check_executors, location
from streaming.failure import NoWorker, query_failure
from streaming.findings import Findings
from streaming.fold import OUTPUT_SCHEMA, STATE_SCHEMA, Fold
from streaming.history import HistoryExporter, Outbox
from streaming.keys import REVIEW
from streaming.lookup import Stored
from streaming.own_files import open_own_files
from streaming.preflight import identity_of
from streaming.prime import find_unreviewed, read_views
from streaming.progress import Progress
from streaming.recent import RecentMinutes
from streaming.session import is_ended_by_master
from streaming.settings import JobSettings, Parts
from streaming.sink import Sink
from streaming.source import FORMAT, make_source
from streaming.state_files import check_state
from streaming.stores import Store
from streaming.topic_watch import TopicWatch, watched_topic
from streaming.unfinished import next_unfinished, plan_again
from streaming.verdicts import VerdictRecorder, VerdictStore

_log = logging.getLogger("sds-monitor")

QUERY_NAME = "sds-monitor"
_HISTORY_TIMEOUT_S = 10.0
"""Longest wait for Kafka of one write to the history's topics. A failed write is
repeated, and the job's end waits for it."""

_NOTICE_S = 0.2
"""Longest time until a request to end is noticed, seconds."""

_STARTS = 3
"""Starts of a query, each of which waits 10 s for Spark's Python processes."""

_STOP_TIMEOUT_S = 10.0
"""Longest wait for Spark to end a batch when the query is stopped. A batch that is not
committed by then is repeated at the next start."""


@dataclass
class Job:
    """A running job.

    Attributes:
        settings: Settings of the job.
        board: The newest figures.
        query: Spark's query.
        progress: Progress of the query.
        findings: Recent incidents, and what the history does not have yet.
        recent: Figures of the last hour.
        details: Definite acknowledgements; None if the checkpoint stores none.
        others: What is stored of the kinds of view other than channels, by prefix.
        verdicts: Stores the verdicts that are shown; None to store none.
        restart: Starts the query again; only before its first batch.
    """

    settings: JobSettings
    board: Board
    query: StreamingQuery
    progress: Progress
    findings: Findings
    recent: RecentMinutes
    restart: Callable[[], StreamingQuery]
    details: DetailStore | None = field(default=None)
    others: Mapping[str, Stored] = field(default_factory=dict)
    verdicts: VerdictRecorder | None = field(default=None)
    _starts: int = 1

    @property
    def has_begun(self) -> bool:
        """True: incidents and minutes can be found."""
        return True

    @property
    def stored(self) -> Mapping[str, Stored]:
        """What is stored of each kind of view, by prefix."""
        channels = Stored(Store(self.findings, self.recent), self.settings.history)
        return {CHANNELS.prefix: channels, **self.others}

    def wait(self, seconds: float, ending: threading.Event | None = None) -> bool:
        """Wait for the end, at most so long; returns whether the job has ended.

        Args:
            seconds: Longest wait, seconds.
            ending: An event that ends the wait soon after it is set.

        Raises:
            JobFailed: It ended with an error.
            connectors.kafka.settings.KafkaRefused: A broker refuses the client.
        """
        until_s = time.monotonic() + seconds
        try:
            # A wait in the JVM notices no signal.
            while not (ended := self._ends_within(_NOTICE_S)):
                is_ending = ending is not None and ending.is_set()
                if is_ending or time.monotonic() >= until_s:
                    break
        except StreamingQueryException as error:
            failure = query_failure(error)
            if isinstance(failure, NoWorker) and self._starts_again():
                _log.warning(
                    "Spark's Python process for the query did not answer within 10 s: "
                    "the query starts again now"
                )
                return False
            self.board.set_job(running=False, error=failure.cause)
            raise failure from error
        self.progress.update(self.query)
        return ended

    def _starts_again(self) -> bool:
        """Start the query again if it may be; returns whether it was."""
        self.progress.update(self.query)
        if self.progress.batches or self._starts == _STARTS:
            return False
        self._starts += 1
        self.query = self.restart()
        self.board.set_job(running=True)
        return True

    def _ends_within(self, seconds: float) -> bool:
        # Any number of seconds, whatever its type says.
        return bool(self.query.awaitTermination(seconds))  # type: ignore[arg-type]

    def look(self, snapshot: Snapshot, now_ms: int, wall_ms: int | None = None) -> None:
        """Store the verdicts that are shown now; see `VerdictRecorder.look`."""
        if self.verdicts is not None:
            self.verdicts.look(snapshot, now_ms, wall_ms)

    def report(self, generated_at_ms: int) -> dict[str, Any]:
        """The report as of now; see `build_report`."""
        details = incidents = None
        others = {}
        if self.details is not None and self.settings.report_detail:
            details = self.details.latencies()
            others = {
                prefix: one.find_incidents(IncidentQuery())
                for prefix, one in self.stored.items()
            }
            incidents = others.pop(CHANNELS.prefix)
        snapshot = judge_blindness(self.board.snapshot)
        return build_report(snapshot, generated_at_ms, details, incidents, others)


@contextmanager
def running_job(
    spark: SparkSession,
    settings: JobSettings,
    board: Board | None = None,
    protocols: tuple[AnyProtocol, ...] = PROTOCOLS,
    watch: TopicWatch | None = None,
) -> Iterator[Job]:
    """Start a job, and stop it at the end of the block.

    Args:
        spark: The session that runs the query.
        settings: Settings of the job.
        board: Gets the figures, of the same protocols; None for a new one. It may have
            those of an earlier job of this process on the same checkpoint.
        protocols: Protocols that the job observes.
        watch: Watch of the topic, with the same board, which has had an answer; None
            for one of this job's own.

    Raises:
        streaming.checkpoint.CheckpointInUse: Another job runs on the checkpoint.
        streaming.checkpoint.CheckpointMismatch: The checkpoint was begun for another
            topic, without ``--report-detail``, or with other settings of the model.
        streaming.checkpoint.CheckpointUnwritable: The checkpoint cannot be written to.
        streaming.damage.DamagedCheckpoint: The checkpoint is damaged.
        sds_core.observer.blob.UnknownBlobVersion: A newer release wrote its state.
        sds_core.observer.kinds.UnknownKind: It has views of an unregistered kind.
        streaming.failure.JobFailed: Spark cannot read its state, or the executors of
            a cluster cannot work.
        connectors.kafka.settings.KafkaUnreachable: No broker answered.
        connectors.kafka.settings.TopicMissing: The topic does not exist.
        streaming.history.HistoryInUse: Another job writes to its history.
        streaming.history.HistoryUnwritable: The history cannot be written to.
    """
    board = Board(protocols) if board is None else board
    source = settings.source
    with ExitStack() as stack:
        stack.enter_context(locked_checkpoint(settings.checkpoint))
        if watch is None:
            # First of all, so that a wrong address ends in a plain error.
            with closing(TopicOffsets(source.kafka)) as first:
                first.partitions()
            watch = stack.enter_context(
                watched_topic(source.kafka, board, settings.group)
            )
        log = read_batch_log(settings.checkpoint)
        check_state(settings.checkpoint, log)
        identity = identity_of(settings, log)
        identity.unfinished = next_unfinished(log, identity.unfinished)
        kinds = kinds_of(protocols)
        own = open_own_files(
            settings.checkpoint,
            identity,
            kinds,
            settings.label_budget,
            first_sequence=time.time_ns() // 1_000,
        )
        identity, findings, details, ledgers, recent, register = own[:6]
        plan_again(settings.checkpoint, log, identity.unfinished)
        complete(settings.checkpoint, log)
        others = {
            prefix: Stored(one, settings.history) for prefix, one in own.others.items()
        }
        if not board.snapshot.primed:
            check_executors(spark, source.kafka, settings.checkpoint)
            board.set_table(settings.channel_table)
        observer = settings_of(identity.observer)
        board.set_observer(observer)
        board.set_job(
            restarts=identity.starts - 1,
            version=version("sds-monitor"),
            rules=compiled.form(),
        )
        dead_letters = _dead_letters(settings)
        with_history = settings.history is not None

        def count_pending() -> int:
            outboxes = (findings, *(one.findings for one in own.others.values()))
            return sum(one.count_pending() for one in outboxes)

        sink = Sink(
            board,
            ledgers,
            dead_letters,
            findings,
            # Without a history, nothing would delete them.
            with_history,
            details,
            recent,
            register,
            protocols,
            own.others,
            own.groups,
        )
        position = log.position
        register.begin(log.committed, 0 if position is None else position.requests)
        if own.groups is not None:
            own.groups.begin(log.committed)
        # The job's own counters come before the totals: a counter that began at 0 and
        # then jumped to its old value would look like growth.
        if position is not None:
            board.set_position(position)
        board.set_job(reading_checkpoint=log.committed is not None)
        if with_history:
            board.set_job(history_pending=count_pending())
        # An earlier job of this process may have published a batch that was not
        # committed, and is now repeated: the checkpoint's older totals would look like
        # counters that fall.
        if not board.snapshot.primed:
            views = read_views(spark, settings.checkpoint, log, kinds)
            sink.publish({key: view.totals for key, view in views.items()})
            for prefix, ledger in ledgers.items():
                ledger.vacate(board.names(prefix))
            register.set_keys(key for key in views if kinds.split(key)[0].remains)
            unreviewed = find_unreviewed(views, kinds, settings.forget_ms)
            register.request((key, REVIEW) for key in unreviewed)
        channels = board.snapshot.views[CHANNELS.prefix].totals
        recent.begin(channels, board.snapshot.clock_ms)
        for prefix, store in own.others.items():
            totals = board.snapshot.views[prefix].totals
            store.recent.begin(totals, board.snapshot.clock_ms)
        with _exporting(settings, findings, board, own.others.values()) as exporter:
            fold = Fold(
                replace(observer, forget_ms=settings.forget_ms),
                details is not None,
                protocols,
            )
            all_findings = {CHANNELS.prefix: findings} | {
                prefix: one.findings for prefix, one in own.others.items()
            }
            verdicts = VerdictRecorder(
                {
                    prefix: VerdictStore(one, with_history)
                    for prefix, one in all_findings.items()
                },
                board,
            )
            unfinished = identity.unfinished
            parts = None if unfinished is None else unfinished.parts

            def start() -> StreamingQuery:
                return _start(spark, settings, parts, sink, protocols, fold)

            query = start()
            progress = Progress(
                board, watch, position, count_pending if with_history else None
            )
            # The lag first: that of an earlier query would seem to be this one's.
            watch.follow(position)
            board.set_job(
                running=True, error="", retrying=False, reading_checkpoint=False
            )
            job = Job(
                settings,
                board,
                query,
                progress,
                findings,
                recent,
                start,
                details,
                others,
                verdicts,
            )
            try:
                yield job
            finally:
                verdicts.close()
                query = job.query
                if exporter is not None and (query.isActive or query.exception()):
                    # A user requested the end and waits for it, or the job goes on.
                    exporter.limit_remaining_time()
                _stop(spark, query)
                if dead_letters is not None:
                    dead_letters.close()
                board.set_job(running=False)


def _dead_letters(settings: JobSettings) -> DeadLetterWriter | None:
    if settings.dead_letter_topic is None:
        return None
    source = settings.source
    return DeadLetterWriter(source.kafka, source.client, settings.dead_letter_topic)


def _exporting(
    settings: JobSettings,
    findings: Findings,
    board: Board,
    others: Iterable[Store],
) -> AbstractContextManager[HistoryExporter | None]:
    """Exports findings to the history while the block runs, if there is a history."""
    history = settings.history
    if history is None:
        return nullcontext()

    def topics(tables: KindTables) -> HistoryTopics | None:
        if not history.has_topics:
            return None
        # Topics of other kinds have a name of their own behind that of channels.
        end = ""
        if tables is not CHANNEL_TABLES:
            end = f".{figures_of(tables.kind).names.many}"
        return HistoryTopics(
            _with_timeout(settings.source.kafka, _HISTORY_TIMEOUT_S),
            f"{history.incidents_topic}{end}",
            f"{history.minutes_topic}{end}",
            retention_ms=history.days * 86_400_000,
            tables=tables,
            verdicts_topic=f"{history.verdicts_topic}{end}",
        )

    return HistoryExporter(
        history,
        findings,
        topics(CHANNEL_TABLES),
        lambda: board.snapshot.clock_ms,
        board.snapshot.observer,
        [Outbox(one.findings, topics(one.tables), one.tables) for one in others],
    )


def _start(
    spark: SparkSession,
    settings: JobSettings,
    parts: Parts | None,
    sink: Sink,
    protocols: tuple[AnyProtocol, ...],
    fold: Fold,
) -> StreamingQuery:
    spark.dataSource.register(make_source(protocols))
    requests = str(own_files(settings.checkpoint) / VIEWS)
    source = replace(
        settings.source,
        requests=requests,
        limits=replace(settings.source.limits, parts=parts),
        tasks=settings.source.tasks or spark.sparkContext.defaultParallelism,
    )
    rows = (
        spark.readStream.format(FORMAT)
        .options(**source.to_options())
        .load()
        .withWatermark("event_time", "1 millisecond")
        .groupBy("key")
        .applyInPandasWithState(
            fold,
            OUTPUT_SCHEMA,
            STATE_SCHEMA,
            "update",
            GroupStateTimeout.EventTimeTimeout,
        )
    )
    writer = (
        rows.writeStream.queryName(QUERY_NAME)
        .outputMode("update")
        .option("checkpointLocation", location(spark, settings.checkpoint))
        .foreachBatch(sink)
    )
    if settings.until_caught_up:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.trigger_s:g} seconds").start()


def _stop(spark: SparkSession, query: StreamingQuery) -> None:
    """Stop a query; a batch that does not end in time is abandoned."""
    spark.conf.set("spark.sql.streaming.stopTimeout", f"{_STOP_TIMEOUT_S:.0f}s")
    try:
        query.stop()
    except Py4JJavaError as error:
        if "java.util.concurrent.TimeoutException" in str(error):
            _log.warning(
                "the last batch did not end: it is done again at the next start"
            )
        elif not is_ended_by_master():
            # With the application of a cluster its queries have ended.
            raise


def _with_timeout(kafka: KafkaSettings, longest_s: float) -> KafkaSettings:
    """The same cluster with a timeout of at most so many seconds."""
    return replace(kafka, timeout_s=min(kafka.timeout_s, longest_s))
