"""One job: connects source, fold, sink, history and figures, and runs the query."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout

from connectors.kafka.dead_letter import DeadLetterWriter
from connectors.kafka.offsets import TopicOffsets
from connectors.storage.disk import NewFiles
from sds_core import compiled
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.kinds import AnyProtocol
from sds_core.observer.protocols import PROTOCOLS, ROOT_KIND, kinds_of
from sds_core.observer.report import build_report
from sds_core.observer.settings_table import settings_of
from streaming.batch_log import SPARKS
from streaming.board import Board
from streaming.checkpoint import locked_checkpoint
from streaming.chunk import REVIEW
from streaming.executors import check_executors, location
from streaming.failure import NoWorker, query_failure
from streaming.fold import OUTPUT_SCHEMA, STATE_SCHEMA, Fold
from streaming.history import HistoryExporter, exporting
from streaming.ledger.findings import number_rows_from
from streaming.ledger.stores import Stores
from streaming.lookup import Stored
from streaming.open_checkpoint import OpenCheckpoint, open_checkpoint
from streaming.prime import find_unreviewed, read_views
from streaming.progress import Progress
from streaming.session import is_ended_by_master
from streaming.settings import JobSettings
from streaming.sink import Sink
from streaming.source import read_frames
from streaming.topic_watch import TopicWatch, watched_topic
from streaming.verdicts import VerdictRecorder

_log = logging.getLogger("sds-monitor")

QUERY_NAME = "sds-monitor"
_NOTICE_S = 0.2
"""Maximum time until `Job.wait` notices that `ending` is set, seconds."""

_STARTS = 3
"""Maximum number of starts of a query.

At each start, Spark waits at most 10 s for its Python process.
"""

_STOP_TIMEOUT_S = 10.0
"""Maximum time that a query has to finish its batch when it is stopped, seconds."""


@dataclass
class Job:
    """A running job; `restart` restarts a query that failed before its first batch."""

    settings: JobSettings
    board: Board
    query: StreamingQuery
    progress: Progress
    stores: Stores
    restart: Callable[[], StreamingQuery]
    verdicts: VerdictRecorder
    _starts: int = 1
    _end: threading.Event = field(init=False)

    def __post_init__(self) -> None:
        """Start the thread that waits until the query ends."""
        self._end = _end_of(self.query)

    @property
    def stored(self) -> dict[str, Stored]:
        """For the prefix of each kind, an object that finds the kind's findings.

        Findings are incidents, minutes and verdicts.
        """
        return {
            prefix: Stored(store, self.settings.history)
            for prefix, store in self.stores.by_kind.items()
        }

    def wait(self, seconds: float, ending: threading.Event | None = None) -> bool:
        """Wait until the job ends, `seconds` have passed, or `ending` is set.

        Returns whether the job has ended.

        Raises:
            JobFailed: The job ended with an error.
            connectors.kafka.settings.KafkaRefused: A broker refuses the client.
        """
        until_s = time.monotonic() + seconds
        try:
            while not (ended := self._ends_within(_NOTICE_S)):
                is_ending = ending is not None and ending.is_set()
                if is_ending or time.monotonic() >= until_s:
                    break
        except StreamingQueryException as error:
            failure = query_failure(error)
            if isinstance(failure, NoWorker) and self._starts_again():
                _log.warning(
                    "Spark's Python process for the query did not answer within 10 s: "
                    "the query restarts now"
                )
                return False
            self.board.set_job(running=False, error=failure.cause)
            raise failure from error
        self.progress.update(self.query)
        self.stores.ledger.tidy()
        return ended

    def _starts_again(self) -> bool:
        self.progress.update(self.query)
        if self.progress.batches or self._starts == _STARTS:
            return False
        self._starts += 1
        self.query = self.restart()
        self._end = _end_of(self.query)
        self.board.set_job(running=True)
        return True

    def _ends_within(self, seconds: float) -> bool:
        if not self._end.wait(seconds):
            return False
        # `_end` is also set if the waiting thread has failed, so the query may still
        # run. Spark accepts any number of seconds, not only integers.
        return bool(self.query.awaitTermination(seconds))  # type: ignore[arg-type]

    def report(self, generated_at_ms: int) -> dict[str, Any]:
        """The current report; see `build_report`."""
        details = incidents = None
        others: dict[str, list[ChannelIncident]] = {}
        if self.stores.details is not None and self.settings.report_detail:
            details = self.stores.details.latencies(ROOT_KIND.prefix)
            others = {
                prefix: one.find_incidents(IncidentQuery())
                for prefix, one in self.stored.items()
            }
            incidents = others.pop(ROOT_KIND.prefix)
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
    """Start a job, and stop it when the block ends.

    `board` receives the figures, and must have the same `protocols`. The board may hold
    figures of an earlier job of this process on the same checkpoint. `watch` must watch
    the topic with the same board, and must have received Kafka's first answer. By
    default, the job creates `board` and `watch`.

    Raises:
        JobFailed: Spark cannot read the checkpoint's state, or the executors of a
            cluster cannot run tasks.
        sds_core.observer.kinds.UnknownKind: The checkpoint has a view of an
            unregistered kind.
        connectors.kafka.settings.KafkaUnreachable: No broker answered.
        connectors.kafka.settings.TopicMissing: The topic does not exist.
        Exception: The errors of `streaming.open_checkpoint.check_start`.
    """
    board = Board(protocols) if board is None else board
    kinds = kinds_of(protocols)
    kafka = settings.source.kafka
    with ExitStack() as stack:
        stack.enter_context(locked_checkpoint(settings.checkpoint))
        if watch is None:
            with closing(TopicOffsets(kafka)) as first:
                first.partitions()
            watch = stack.enter_context(watched_topic(kafka, board, settings.group))
        checkpoint = open_checkpoint(settings, kinds)
        stores = checkpoint.stores
        stack.callback(stores.ledger.close)
        if not board.snapshot.primed:
            check_executors(spark, kafka, settings.checkpoint)
            board.set(table=settings.channel_table)
        _show(board, checkpoint)
        dead_letters = None
        if (topic := settings.dead_letter_topic) is not None:
            dead_letters = DeadLetterWriter(kafka, settings.source.client, topic)
            stack.callback(dead_letters.close)
        sync = NewFiles(settings.checkpoint, SPARKS).sync
        position_of = checkpoint.position_of
        sink = Sink(board, stores, dead_letters, position_of, protocols, sync)
        # If an earlier job of this process has primed the board, the board keeps its
        # totals. They may include an uncommitted batch, which is now repeated. If the
        # checkpoint's older totals were published, counters would seem to fall.
        if not board.snapshot.primed:
            views = read_views(spark, settings.checkpoint, checkpoint.log, kinds)
            sink.prime({key: view.totals for key, view in views.items()})
            unreviewed = find_unreviewed(views, kinds, settings.forget_ms)
            stores.register.request((key, REVIEW) for key in unreviewed)
        # A start that fails before leaves a damaged checkpoint as it is.
        number_rows_from(stores.ledger, checkpoint.first_sequence)
        for prefix, store in stores.by_kind.items():
            totals = board.snapshot.views[prefix].totals
            store.recent.begin(totals, board.snapshot.clock_ms)
        export = exporting(settings.history, kafka, stores, board)
        exporter = stack.enter_context(export)
        recorded = {prefix: one.verdicts for prefix, one in stores.by_kind.items()}
        verdicts = VerdictRecorder(recorded, board)
        rules = settings_of(checkpoint.identity.observer)
        rules = replace(rules, forget_ms=settings.forget_ms)
        fold = Fold(rules, stores.details is not None, protocols)
        tasks = settings.source.tasks or spark.sparkContext.defaultParallelism
        source = replace(checkpoint.source, tasks=tasks)
        frames = partial(read_frames, spark, source, protocols)
        place = location(spark, settings.checkpoint)
        start = partial(_start, frames, fold, sink, place, settings.trigger)
        query = start()
        position = checkpoint.log.position
        stalled_s = float if exporter is None else exporter.stalled_s
        progress = Progress(board, watch, position, stores.count_pending, stalled_s)
        job = Job(settings, board, query, progress, stores, start, verdicts)
        # When the block ends, all callbacks run, even if one fails. The callback that
        # was added last runs first.
        stack.callback(board.set_job, running=False)
        stack.callback(_stop, spark, job)
        if exporter is not None:
            stack.callback(_limit_remaining_time, exporter, job)
        stack.callback(verdicts.close)
        # The watch gets the position before the board shows that the job runs.
        # Otherwise, the lag of an earlier query would seem to belong to the new query.
        watch.follow(position)
        board.set_job(running=True, error="", retrying=False, reading_checkpoint=False)
        yield job


def _show(board: Board, checkpoint: OpenCheckpoint) -> None:
    """Publish the figures that are known before the query starts.

    The job's own counters are published before the totals of the views. If the totals
    came first, the metrics would show such a counter with 0, and then with its old
    value, which looks like growth.
    """
    log, identity, stores = checkpoint[:3]
    board.set(observer=settings_of(identity.observer))
    board.set_job(
        restarts=identity.starts - 1,
        version=version("sds-monitor"),
        rules=compiled.form(),
    )
    if log.position is not None:
        board.set_position(log.position)
    board.set_job(
        reading_checkpoint=log.committed is not None,
        history_pending=stores.count_pending(),
    )


def _start(
    frames: Callable[[], DataFrame],
    fold: Fold,
    sink: Sink,
    checkpoint: str,
    trigger: Mapping[str, Any],
) -> StreamingQuery:
    rows = (
        frames()
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
    return (
        rows.writeStream.queryName(QUERY_NAME)
        .outputMode("update")
        .option("checkpointLocation", checkpoint)
        .foreachBatch(sink)
        .trigger(**trigger)
        .start()
    )


def _end_of(query: StreamingQuery) -> threading.Event:
    """Return an event that is set when a query has ended."""
    ended = threading.Event()

    def wait() -> None:
        # An error is ignored here, because `_ends_within` raises the same error.
        with suppress(Exception):
            query.awaitTermination()
        ended.set()

    # The main thread must not wait in the JVM, because it would not notice signals. A
    # waiting thread costs less CPU time than asking the JVM several times per second
    # whether the query has ended.
    threading.Thread(target=wait, name="end of the query", daemon=True).start()
    return ended


def _limit_remaining_time(exporter: HistoryExporter, job: Job) -> None:
    if job.query.isActive or job.query.exception():
        # If the query is still active, a user is waiting for the end of the job. If the
        # query has failed, a new job can export the remaining rows. In both cases, the
        # time is limited.
        exporter.limit_remaining_time()


def _stop(spark: SparkSession, job: Job) -> None:
    spark.conf.set("spark.sql.streaming.stopTimeout", f"{_STOP_TIMEOUT_S:.0f}s")
    try:
        job.query.stop()
    except Py4JJavaError as error:
        if "java.util.concurrent.TimeoutException" in str(error):
            _log.warning("the last batch did not finish: the next start repeats it")
        elif not is_ended_by_master():
            # If the cluster has ended the application, its queries have ended too, so
            # the error does not matter.
            raise
