"""Spark data source ``sds-frames``: reads Kafka records and returns digests of them.

Spark's Python workers read and decode the records. The JVM gets only compact rows: for
each chunk of records, one row per channel and one row per tap (docs/architecture.md,
decision 2).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TimedOffset, TopicOffsets
from connectors.kafka.settings import RecordsLost, topic_index
from sds_core.observer.ahead import LOOKAHEAD, Foresight, Look
from sds_core.observer.kinds import AnyProtocol, without_figures
from sds_core.observer.protocols import PROTOCOLS, by_name
from sds_core.observer.record import RawRecord, is_future
from streaming.admission import Admission, Target
from streaming.chunk import CLOCK_KEY, Chunk, DigestRow
from streaming.failure import BatchTooLarge, LostInRead, hand_over
from streaming.ledger.ledger import Ledger
from streaming.ledger.view_register import ViewRegister
from streaming.position import PartitionPosition, Position
from streaming.settings import EARLIEST, SourceSettings

FORMAT = "sds-frames"
SCHEMA = "key string, digest binary, event_time timestamp"
_ARROW_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("digest", pa.binary()),
        ("event_time", pa.timestamp("us", tz="UTC")),
    ]
)
_SAMPLE_RECORDS = 20

_LEAST_PASSED_BYTES = 8 * 1024 * 1024
"""A worker may yield at least this many bytes in a batch, so that any record fits.

If the size limit of batches is greater, the worker may yield up to that limit.
"""

_LONGEST_PLAN_MS = 10_000
"""If a plan takes more wall time than this, the batch is planned again, ms.

While a plan waits for an answer from Kafka, taps may write records. If the wall time
from before the wait applied, these records would be from the future. After the wait,
taps write the records that they have buffered to one partition after the other, so no
partition is idle at first.
"""

_MOST_PLANS = 3
"""Maximum number of plans of a batch.

If the last plan also took long, a batch has one plan: then, plans take long for another
reason than an outage.
"""

_SMALL_BATCH_RECORDS = 64
"""A batch with at most this number of records is read by a single worker.

The read takes 10 ms. A second task would add an overhead of as much time.
"""


@dataclass(frozen=True, slots=True)
class ReadRange:
    """One partition's share of a batch.

    `clock_ms` is the partition's clock before the first of the `offsets`, Unix ms.
    `held` is the partition's end when the batch was planned. `look` is the partition's
    end at an earlier wall time.
    """

    offsets: OffsetRange
    clock_ms: int
    held: int
    look: Look

    @property
    def behind(self) -> OffsetRange:
        """Offsets that follow the range, at most `LOOKAHEAD`.

        The times of the records there show when records of the range were written at
        the latest.
        """
        end = self.offsets.end
        last = min(self.held, end + LOOKAHEAD)
        return OffsetRange(self.offsets.partition, end, max(end, last))

    def within(self, first: int, end: int) -> ReadRange:
        """Return the part of this range in a partition that has [first, end)."""
        partition, start, stop = self.offsets
        stop = max(start, min(stop, end))
        offsets = OffsetRange(partition, min(max(start, first), stop), stop)
        return replace(self, offsets=offsets, held=min(self.held, end))


@dataclass(frozen=True)
class ReadTask(InputPartition):
    """The part of a batch that one worker reads.

    Attributes:
        clock_ms: The batch's admission time T, Unix ms.
        admitted_ms: Wall time of the batch's admission, Unix ms.
        carries_clock: Whether the part also yields the clock row, which contains T.
            This row moves Spark's watermark even if the batch has no records.
        requests: Requests to forget or review views, as rows that the part also yields
            (`streaming.ledger.view_register`).
    """

    ranges: Sequence[ReadRange]
    clock_ms: int
    admitted_ms: int
    carries_clock: bool
    requests: Sequence[DigestRow] = ()


def make_source(
    settings: SourceSettings, protocols: Iterable[AnyProtocol]
) -> type[DataSource]:
    """Make the data source that Spark registers under the name `FORMAT`.

    Spark sends the reader, with the settings and the protocols, to its Python workers.
    The settings are not options of the data source, because Spark prints these options
    in its plans. The workers must be able to import all modules of the protocols.
    """
    registered = without_figures(protocols)

    class SdsFramesSource(DataSource):
        """Registers the reader with Spark."""

        @classmethod
        def name(cls) -> str:
            """Name of the format."""
            return FORMAT

        def schema(self) -> str:
            """Schema of the rows: one row per view and chunk."""
            return SCHEMA

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            """A reader for one query."""
            return SdsFramesReader(settings, registered)

    return SdsFramesSource


def read_frames(
    spark: SparkSession, settings: SourceSettings, protocols: Iterable[AnyProtocol]
) -> DataFrame:
    """Make a data source with these settings; return its rows as a stream."""
    spark.dataSource.register(make_source(settings, protocols))
    return spark.readStream.format(FORMAT).load()


class SdsFramesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver and reads them in the workers."""

    def __init__(
        self, settings: SourceSettings, protocols: Iterable[AnyProtocol] = PROTOCOLS
    ) -> None:
        self._settings = settings
        self._protocols = by_name(protocols)
        self._target: Target | None = None
        self._offsets: TopicOffsets | None = None
        self._register: ViewRegister | None = None
        # For the last plan that found no unread records: the position at which it
        # began, and its wall time, Unix ms.
        self._quiet: tuple[Position | None, int] = (None, 0)
        # Wall time of the end of Kafka's last outage, Unix ms; 0 if it is unknown.
        self._answering_ms = settings.answering_ms
        self._plans_slowly = False
        # Number of records that cannot be read, because Kafka deleted them after their
        # batch was planned. The next planned position counts them as skipped.
        self._unreadable = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return what the workers get: all attributes but the driver's connections."""
        return self.__dict__ | {"_offsets": None, "_register": None}

    def check(self, start: Position) -> None:
        """Check that the topic still holds all unread records after a position."""
        self._admission().check(start)

    @hand_over
    def initialOffset(self) -> dict[str, Any]:
        """Position at which a new checkpoint begins."""
        parts = self._settings.limits.parts
        if parts is not None and parts.begin is not None:
            return parts.begin
        offsets = self._admission().offsets
        topic = offsets.describe()
        partitions = topic.partitions
        firsts = offsets.earliest(partitions)
        window = self._settings.window
        start = self._settings.start if window is None else window.first_ms
        if start != EARLIEST:
            ends = offsets.latest(partitions)
            found: Mapping[int, TimedOffset] = {}
            if not isinstance(start, str):
                found = offsets.first_at_or_after(partitions, start)
            firsts = {p: found[p].offset if p in found else ends[p] for p in partitions}
        return Position(
            # Records before the window are ignored, so T can begin at the window's
            # first time.
            clock_ms=0 if window is None else window.first_ms,
            partitions={p: PartitionPosition(first) for p, first in firsts.items()},
            topic_id=topic.id,
        ).to_json()

    @hand_over
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """End of the next batch; `start` if no records or requests are new."""
        position = Position.from_json(start)
        now_ms = _wall_ms()
        after, quiet_ms = self._quiet
        if position != after:
            quiet_ms = 0
        was_slow = self._plans_slowly
        for _ in range(1 if was_slow else _MOST_PLANS):
            # If the wall clock was set back, this time is set back too.
            self._answering_ms = min(self._answering_ms, now_ms)
            end = self._admission().plan(
                position, now_ms, self._target, quiet_ms, self._answering_ms
            )
            if end == position:
                self._quiet = (position, now_ms)
            planned_ms = _wall_ms()
            self._plans_slowly = planned_ms - now_ms > _LONGEST_PLAN_MS
            if was_slow or not self._plans_slowly:
                break
            now_ms = self._answering_ms = planned_ms
        if (register := self._opened_register()) is not None:
            end = end.with_requests(register.newest_request(), position)
        if end == position:
            return start
        end = replace(end, skipped=end.skipped + self._unreadable)
        self._unreadable = 0
        return end.to_json()

    @hand_over
    def prepareForTriggerAvailableNow(self) -> None:
        """Set where the run ends: at the topic's current end, or after the window."""
        self._target = self._admission().target()

    @hand_over
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ReadTask]:
        """Divide a batch among the workers.

        A Kafka partition is never divided between workers. If the job continues without
        lost records, the batch omits those that were deleted after it was planned. If
        their topic was recreated, it reads nothing from this topic.
        """
        planned = Position.from_json(end)
        ranges = _ranges(Position.from_json(start), planned)
        held = self._held(ranges, planned)
        rows = sum(map(_size, held))
        self._unreadable += sum(map(_size, ranges)) - rows
        is_small = rows <= _SMALL_BATCH_RECORDS
        shares = _balanced(held, 1 if is_small else self._settings.tasks)
        requests = self._requests(Position.from_json(start).requests, planned.requests)
        return [
            ReadTask(
                share,
                end["clock_ms"],
                end["admitted_ms"],
                carries_clock=not index,
                requests=() if index else requests,
            )
            for index, share in enumerate(shares)
        ]

    @hand_over
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one worker's share of a batch; yield digests of its records."""
        assert isinstance(partition, ReadTask)  # noqa: S101 - one of `partitions`
        task = partition
        if task.carries_clock:
            row = DigestRow(CLOCK_KEY, b"")
            yield _record_batch([row, *task.requests], task.clock_ms)
        limit_bytes = max(self._settings.limits.size_bytes, _LEAST_PASSED_BYTES)
        passed_bytes = 0

        def passed(chunk: Chunk) -> pa.RecordBatch:
            nonlocal passed_bytes
            rows = list(chunk.take_rows())
            passed_bytes += sum(len(row.key) + len(row.digest) for row in rows)
            if passed_bytes > limit_bytes:
                raise BatchTooLarge(limit_bytes)
            return _record_batch(rows, task.clock_ms)

        chunks = {
            one.offsets.partition: Chunk(
                one.offsets.partition, one.clock_ms, self._protocols
            )
            for one in task.ranges
        }
        with _collector_paused():
            for record, written_ms in self._settled(task):
                chunk = chunks[record.partition]
                if not self._is_wanted(record, chunk, written_ms):
                    continue
                chunk.add(record, written_ms)
                if chunk.is_full:
                    yield passed(chunk)
            for chunk in chunks.values():
                yield passed(chunk)

    def _settled(self, task: ReadTask) -> Iterator[tuple[RawRecord, int]]:
        """Yield the records of a worker's share, in order of each partition's offsets.

        Each record comes with the latest time at which it may have been written to
        Kafka, Unix ms.
        """
        foresights = {
            wanted.offsets.partition: Foresight[RawRecord](
                wanted.clock_ms, task.admitted_ms, wanted.look
            )
            for wanted in task.ranges
        }
        for record in self._fetched([wanted.offsets for wanted in task.ranges]):
            yield from foresights[record.partition].add(record)
        waiting = {p: one for p, one in foresights.items() if one.waits}
        behind: dict[int, list[RawRecord]] = {p: [] for p in waiting}
        for record in self._fetched(
            [one.behind for one in task.ranges if one.offsets.partition in waiting]
        ):
            behind[record.partition].append(record)
        for partition, foresight in waiting.items():
            yield from foresight.finish(behind[partition])

    def _fetched(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecord]:
        settings = self._settings
        try:
            for records in fetch(settings.client, settings.kafka, ranges):
                yield from records
        except RecordsLost as error:
            if not settings.skip_lost:
                raise
            raise LostInRead(error.topic, error.partition) from error

    def _is_wanted(self, record: RawRecord, chunk: Chunk, written_ms: int) -> bool:
        window = self._settings.window
        if window is None or record.timestamp_ms in window:
            return True
        if record.timestamp_ms > window.last_ms and not is_future(
            record.timestamp_ms, written_ms
        ):
            # This record is later than the window. If records of the window follow it
            # in the partition, they count as late, even if another batch reads them.
            chunk.clock_ms = max(chunk.clock_ms, window.last_ms)
        return False

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: `streaming.progress` commits offsets to Kafka."""

    def stop(self) -> None:
        """Close the driver's connection."""
        if self._offsets is not None:
            self._offsets.close()
            self._offsets = None

    def _held(self, ranges: Sequence[ReadRange], planned: Position) -> list[ReadRange]:
        """Return the parts of a planned batch's ranges that the job can still read."""
        held = [one for one in ranges if _size(one) > 0]
        if lost := self._admission().lost_topics(planned):
            held = [
                one for one in held if topic_index(one.offsets.partition) not in lost
            ]
        if not held or not self._settings.skip_lost:
            # The read itself raises an error if Kafka has deleted a record.
            return held
        partitions = [one.offsets.partition for one in held]
        offsets = self._admission().offsets
        firsts, ends = offsets.earliest(partitions), offsets.latest(partitions)
        return [
            one.within(firsts[partition], ends[partition])
            for partition, one in zip(partitions, held, strict=True)
        ]

    def _requests(self, after: int, until: int) -> list[DigestRow]:
        register = self._opened_register()
        if register is None or after >= until:
            return []
        return [DigestRow(*request) for request in register.requests(after, until)]

    def _opened_register(self) -> ViewRegister | None:
        path = self._settings.requests
        if path is not None and self._register is None:
            self._register = ViewRegister(Ledger(Path(path)))
        return self._register

    def _admission(self) -> Admission:
        settings = self._settings
        if self._offsets is None:
            self._offsets = TopicOffsets(settings.kafka)
        return Admission(
            settings.kafka,
            self._offsets,
            scan_times=self._scan_times,
            mean_bytes=self._mean_bytes,
            limits=settings.limits,
            skip_lost=settings.skip_lost,
            window=settings.window,
        )

    def _scan_times(self, partition: int, start: int, end: int) -> list[TimedOffset]:
        return [
            TimedOffset(record.offset, record.timestamp_ms)
            for record in self._fetched([OffsetRange(partition, start, end)])
        ]

    def _mean_bytes(self, starts: Mapping[int, int]) -> int:
        ends = self._admission().offsets.latest(list(starts))
        sample = [
            OffsetRange(p, start, min(ends[p], start + _SAMPLE_RECORDS))
            for p, start in starts.items()
        ]
        sizes = [record.size_bytes for record in self._fetched(sample)]
        return sum(sizes) // len(sizes) if sizes else 0


def _ranges(start: Position, end: Position) -> list[ReadRange]:
    return [
        ReadRange(
            OffsetRange(partition, ahead.batch_start, ahead.next_offset),
            max(
                start.clock_ms,
                start.partitions.get(partition, PartitionPosition(0)).newest_ms,
            ),
            end.ends.get(partition, ahead.next_offset),
            start.last_look(partition, end.quiet_ms),
        )
        for partition, ahead in end.partitions.items()
    ]


def _balanced(ranges: Sequence[ReadRange], tasks: int) -> list[list[ReadRange]]:
    """Divide ranges into one or more shares with similar numbers of records."""
    shares: list[list[ReadRange]] = [[] for _ in range(max(1, tasks))]
    sizes = [0] * len(shares)
    for wanted in sorted(ranges, key=_size, reverse=True):
        if _size(wanted) <= 0:
            continue
        smallest = sizes.index(min(sizes))
        shares[smallest].append(wanted)
        sizes[smallest] += _size(wanted)
    return [shares[0], *filter(None, shares[1:])]


def _size(wanted: ReadRange) -> int:
    return wanted.offsets.end - wanted.offsets.start


def _record_batch(rows: Sequence[DigestRow], clock_ms: int) -> pa.RecordBatch:
    # T is 0 until a record advances it. Spark's watermark also begins with 0, so Spark
    # would drop rows with T = 0 as late, for example rows of dead letters.
    clock_ms = max(clock_ms, 1)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row.key for row in rows], pa.string()),
            pa.array([row.digest for row in rows], pa.binary()),
            pa.array([clock_ms * 1000] * len(rows), pa.int64()).cast(
                _ARROW_SCHEMA.field("event_time").type
            ),
        ],
        schema=_ARROW_SCHEMA,
    )


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause Python's cyclic garbage collector while the block runs.

    Records and digests have no reference cycles, so the collector is not needed for
    them. Because a read makes many of these objects, the collector would take up to
    half of the CPU time of a read.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
