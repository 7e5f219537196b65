"""Asks Kafka every second for the end of the topic, in a separate thread.

Because the thread is separate, the job can report that Kafka does not answer, and the
user can end the job in this time. The thread continues when a query fails. The query is
restarted when Kafka answers again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from connectors.kafka.offsets import TimedOffset, TopicOffsets
from connectors.kafka.settings import (
    KafkaRefused,
    KafkaSettings,
    KafkaUnreachable,
    TopicMissing,
)
from connectors.kafka.tail import TopicTail
from sds_core.observer.clock import NewRecord
from sds_core.observer.freshness import Freshness, MissingTopic
from sds_core.observer.record import RawRecord, is_future, read_tap
from sds_core.text import one_line
from streaming.board import Board
from streaming.clock_check import ClockCheck
from streaming.position import Position

WITHHELD_S = 60.0
"""Time after which an open transaction counts as hanging, seconds.

Producers usually have this time limit for a transaction.
"""

_log = logging.getLogger("sds-monitor")

_EVERY_S = 1.0

_SAMPLE_ANSWERS = 5
"""New records are read each time that Kafka has answered this number of requests.

These requests take about one heartbeat interval.
"""

_LONGEST_WAIT_S = 5.0
"""Maximum time between two requests while Kafka does not answer, seconds."""

_ANSWER_S = 10.0
"""Maximum wait for an answer, seconds."""

_REFUSALS = 3
"""After this number of consecutive refusals of a step, the refusal counts as final.

Fewer refusals may come from a broker that is shutting down.
"""

_END_S = 5.0
"""Maximum wait for the thread's end, seconds."""

_NO_END = "the end of the topic cannot be read"
_NO_COMPARISON = "clocks cannot be compared with Kafka's"
_NO_SAMPLE = "new records cannot be read to compare the clocks of taps"
_NO_COMMIT = "offsets cannot be committed"
"""Messages for the log, one for each step of the thread that can fail."""


class Withheld:
    """Counts records that cannot be read because a transaction hangs.

    A transaction hangs if it has been open for `WITHHELD_S` or longer. Until a
    transaction ends, a reader of committed records receives neither its records nor any
    later records of the partition. A hanging transaction may never end, so the
    partition seems silent.

    `name_of` returns the text for a partition's number in the log.
    """

    def __init__(self, name_of: Callable[[int], str] = str) -> None:
        self._name_of = name_of
        # Partition -> offset where its open transaction begins, and the monotonic time
        # at which `observe` first found this offset, seconds.
        self._stable: dict[int, tuple[int, float]] = {}
        self._count = 0

    def observe(
        self, stable: Mapping[int, int], written: Mapping[int, int], now_s: float
    ) -> int:
        """Record the ends of all partitions; return the number of withheld records.

        `stable` and `written` are `TopicEnds.ends` and `TopicEnds.written`, and `now_s`
        is the time of a monotonic clock.
        """
        held: dict[int, int] = {}
        for partition, offset in stable.items():
            records = written.get(partition, offset) - offset
            before, since_s = self._stable.pop(partition, (offset, now_s))
            if records <= 0:
                continue
            if before != offset:
                since_s = now_s
            self._stable[partition] = offset, since_s
            if now_s - since_s >= WITHHELD_S:
                held[partition] = records
        count = sum(held.values())
        if count and not self._count:
            _log.warning(
                "%s records of partitions %s cannot be read, because a transaction "
                "has been open for more than %.0f s: end its producer, or find and "
                "abort the transaction with kafka-transactions.sh",
                f"{count:,}",
                ", ".join(map(self._name_of, sorted(held))),
                WITHHELD_S,
            )
        elif self._count and not count:
            _log.info(
                "the transactions that prevented the job from reading records have "
                "ended"
            )
        self._count = count
        return count


class TopicEnds(NamedTuple):
    """The end of each partition of the topic at the wall time `wall_ms`, Unix ms.

    Attributes:
        ends: Offset after the last record that a reader of committed records can
            receive, by partition.
        written: Offset after the last record, committed or not, by partition.
    """

    wall_ms: int
    ends: Mapping[int, int]
    newest: Mapping[int, TimedOffset]
    written: Mapping[int, int]


class TopicWatch:
    """Asks Kafka for the end of the topic, in a thread, until `close` is called.

    The thread publishes the lag and the time of each answer. The thread also compares
    this machine's clock with the clocks of Kafka and of the taps, and commits offsets.
    The thread closes `offsets` and `tail`, so the caller must not use them. Before
    Kafka's first answer, `ends` is None. `name_of` is that of `Withheld`.
    """

    def __init__(
        self,
        offsets: TopicOffsets,
        tail: TopicTail,
        board: Board,
        group: str | None,
        name_of: Callable[[int], str] = str,
    ) -> None:
        self._offsets = offsets
        self._tail = tail
        self._reached: deque[TopicEnds] = deque(maxlen=_SAMPLE_ANSWERS + 1)
        self._board = board
        self._group = group
        self._clock = ClockCheck(offsets.broker_time_ms, _wall_ms, time.monotonic)
        self._withheld = Withheld(name_of)
        self._position: Position | None = None
        self._committed: Mapping[int, int] = {}
        self._refusals: Counter[str] = Counter()
        self._unexplained: set[str] = set()
        self._refusal: KafkaRefused | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="topic", daemon=True)
        self.ends: TopicEnds | None = None

    def start(self) -> None:
        """Start the thread that asks Kafka."""
        if self._board.snapshot.job.kafka.answered_ms is None:
            question = Freshness(asked_ms=_wall_ms(), answered_s=time.monotonic())
            self._board.set_job(kafka=question)
        self._thread.start()

    def close(self) -> None:
        """End the thread; before it ends, it commits new offsets if Kafka answers."""
        self._ending.set()
        self._thread.join(_END_S)

    def follow(self, position: Position | None) -> None:
        """Set the position up to which the job has read; None if unknown.

        The lag is measured from this position. The thread commits its offsets soon.
        """
        self._position = position
        self._board.set_job(**self._lag())

    def check(self) -> None:
        """Raise an error if the thread's further requests would fail in the same way.

        Raises:
            connectors.kafka.settings.KafkaRefused: A broker has refused the client
                several times in succession.
        """
        if self._refusal is not None:
            raise self._refusal

    def _run(self) -> None:
        wait_s = 0.0
        answers = False
        while not self._ending.wait(wait_s):
            answers = self._attempt(self._measure, _NO_END)
            if answers:
                # If a step fails, the remaining steps are skipped. They might also wait
                # for an answer, and so delay the next request for the topic's end.
                _ = (
                    self._attempt(self._compare, _NO_COMPARISON)
                    and self._attempt(self._sample, _NO_SAMPLE)
                    and self._attempt(self._commit, _NO_COMMIT)
                )
            again_s = _EVERY_S if answers else 2 * wait_s
            wait_s = min(max(again_s, _EVERY_S), _LONGEST_WAIT_S)
        if answers:
            self._attempt(self._commit, _NO_COMMIT)
        self._offsets.close()
        self._tail.close()

    def _attempt(self, step: Callable[[], None], failed: str) -> bool:
        """Execute a step; return whether it succeeded.

        If the step fails, the board gets the cause.
        """
        try:
            step()
        except Exception as error:  # The thread continues after any error.
            explained = isinstance(error, KafkaUnreachable | TopicMissing)
            if not explained and failed not in self._unexplained:
                self._unexplained.add(failed)
                _log.exception("%s: %r", failed, error)
            if isinstance(error, KafkaRefused):
                self._refusals[failed] += 1
                if self._refusals[failed] >= _REFUSALS:
                    self._refusal = error
            self._note_failure(error)
            return False
        del self._refusals[failed]
        self._unexplained.discard(failed)
        return True

    def _measure(self) -> None:
        try:
            partitions = self._offsets.partitions()
        except TopicMissing as error:
            # If Kafka answers that the topic is missing, this counts as an answer. The
            # query gets the same error and ends.
            known = self._board.snapshot.job.missing_topic
            missing = known or MissingTopic(error.topic, _wall_ms())
            self._note_answer(missing_topic=missing)
            raise
        ends = self._offsets.latest(partitions)
        wall_ms = _wall_ms()
        before = self.ends
        written = self._offsets.written(partitions)
        newest = self._offsets.newest(partitions)
        self.ends = TopicEnds(wall_ms, ends, newest, written)
        self._reached.append(self.ends)
        withheld = self._withheld.observe(ends, written, time.monotonic())
        # The time of the answer and the new lag are set together. Otherwise, the old
        # lag would seem fresh for a moment.
        self._note_answer(
            before is None or before.ends != ends,
            missing_topic=None,
            records_withheld=withheld,
            **self._lag(),
        )

    def _lag(self) -> dict[str, Any]:
        position, topic = self._position, self.ends
        if position is None or topic is None:
            return {}
        reached = position.next_offsets()
        behind = sum(
            max(0, topic.written.get(partition, 0) - offset)
            for partition, offset in reached.items()
        )
        # An entry that the job has read may be a record from the future, or the end of
        # a transaction. Neither advances the job's clock, however much later the entry
        # is. For read entries, the position therefore has the newest time.
        now_ms = _wall_ms()
        times = [
            at.timestamp_ms
            for partition, at in topic.newest.items()
            if at.offset >= reached.get(partition, 0)
            and not is_future(at.timestamp_ms, now_ms)
        ]
        times += [here.newest_ms for here in position.partitions.values()]
        lag_s = max(0, max(times, default=0) - position.clock_ms) / 1000
        return {
            "records_behind": behind,
            # The lag is measured from the job's clock, which is 0 before the first
            # record.
            "event_time_lag_seconds": lag_s if position.clock_ms else None,
        }

    def _compare(self) -> None:
        try:
            self._clock.compare()
        finally:
            self._board.set_job(clock=self._clock.figures)

    def _sample(self) -> None:
        if len(self._reached) <= _SAMPLE_ANSWERS:
            return
        reached = list(self._reached)
        self._reached.clear()
        self._reached.append(reached[-1])
        first, *later = reached
        records = self._tail.read(first.ends, later[-1].ends)
        self._clock.observe(_new_record(record, later) for record in records)
        self._board.set_job(clock=self._clock.figures)

    def _commit(self) -> None:
        if self._group is None or self._position is None:
            return
        offsets = self._position.next_offsets()
        if offsets != self._committed:
            self._offsets.commit(self._group, offsets)
            self._committed = offsets

    def _note_answer(self, has_grown: bool = False, **figures: Any) -> None:
        now_s = time.monotonic()
        job = self._board.snapshot.job
        arrivals = job.arrivals.after_answer(has_grown, job.kafka, now_s)
        answer = Freshness(_wall_ms(), now_s)
        self._board.set_job(kafka=answer, arrivals=arrivals, **figures)

    def _note_failure(self, error: Exception) -> None:
        # If a record arrived while Kafka did not answer, the time of its arrival is
        # unknown. Such a record cannot show whether a tap's clock is right.
        self._reached.clear()
        known = self._board.snapshot.job.kafka
        self._board.set_job(kafka=replace(known, cause=one_line(str(error))))


@contextmanager
def watched_topic(
    kafka: KafkaSettings, board: Board, group: str | None
) -> Iterator[TopicWatch]:
    """Run a `TopicWatch` while the block runs; it gets `board` and `group`."""
    brief = replace(kafka, timeout_s=min(kafka.timeout_s, _ANSWER_S))
    watch = TopicWatch(
        TopicOffsets(brief), TopicTail(brief), board, group, kafka.partition_name
    )
    watch.start()
    try:
        yield watch
    finally:
        watch.close()


def _new_record(record: RawRecord, reached: Sequence[TopicEnds]) -> NewRecord:
    arrived_ms = next(
        (
            at.wall_ms
            for at in reached
            if at.ends.get(record.partition, 0) > record.offset
        ),
        reached[-1].wall_ms,
    )
    return NewRecord(read_tap(record.headers).observer, record.timestamp_ms, arrived_ms)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
