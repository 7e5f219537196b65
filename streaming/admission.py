"""How far the next batch may read.

Every batch ends at one common record time T over all partitions, so that on
catch-up no partition runs ahead of another and T is a clock that holds for every
channel (architecture, decision 3). When all that is there fits into one batch it is
read to the end, and T is the least of the partitions' newest record times.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from connectors.kafka.offsets import TimedOffset
from connectors.kafka.record import is_future
from connectors.kafka.settings import RecordsLost
from streaming.position import PartitionPosition, Position

IDLE_PARTITION_MS = 30_000
"""A partition without a record for this long does not hold T back (model, 3)."""

_FIRST_STRIDE_MS = 1_000
_UNSAMPLED_ROWS = 500
"""So few records are read without asking for their size: it would cost a fetch."""


class Offsets(Protocol):
    """Where records lie; see `connectors.kafka.offsets.TopicOffsets`."""

    def partitions(self) -> list[int]:
        """The topic's partitions."""

    def earliest(self, partitions: Collection[int]) -> dict[int, int]:
        """First offset still held."""

    def latest(self, partitions: Collection[int]) -> dict[int, int]:
        """Offset after the last committed record."""

    def newest(self, partitions: Collection[int]) -> dict[int, TimedOffset]:
        """A record with the greatest time."""

    def first_at_or_after(
        self, partitions: Collection[int], timestamp_ms: int
    ) -> dict[int, TimedOffset]:
        """First record with at least a time."""


ScanTimes = Callable[[int, int, int], Sequence[TimedOffset]]
"""Partition, start, end -> offset and time of each record in [start, end)."""

MeanBytes = Callable[[Mapping[int, int]], int]
"""Partition -> next offset: mean size of the records that come next, in bytes."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one batch may read at most.

    Attributes:
        rows: Kafka records. A batch has about 0.4 s of fixed cost, so large ones
            catch up fastest (docs/architecture.md).
        size_bytes: Bytes of record values, by the mean size of what comes next.
    """

    rows: int = 300_000
    size_bytes: int = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """Where a run that drains the topic ends: offsets seen at its start."""

    ends: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Admission:
    """Plans batches over a topic's offsets.

    Attributes:
        topic: Its name, for errors.
        offsets: Where records lie.
        scan_times: Reads record times where the broker's index does not tell.
        mean_bytes: Samples the size of the records to come.
        limits: Of one batch.
        skip_lost: Go on, and count, when records are gone before they were read.
    """

    topic: str
    offsets: Offsets
    scan_times: ScanTimes
    mean_bytes: MeanBytes
    limits: BatchLimits = BatchLimits()
    skip_lost: bool = False

    def target(self) -> Target:
        """The end of what the topic holds now."""
        return Target(self.offsets.latest(self.offsets.partitions()))

    def plan(
        self, start: Position, wall_ms: int, target: Target | None = None
    ) -> Position:
        """The end of the next batch; `start` itself if there is nothing to do.

        Args:
            start: Where the batch begins.
            wall_ms: Wall time now: records stamped far ahead of it move no clock.
            target: Read no further, and let T end at the greatest record time.

        Raises:
            RecordsLost: Records are gone before they were read.
        """
        partitions = self.offsets.partitions()
        ends = self.offsets.latest(partitions)
        if target is not None:
            ends = {p: min(end, target.ends.get(p, 0)) for p, end in ends.items()}
        start = self._placed(start, partitions, ends)
        ends = {p: max(ends[p], start.partitions[p].next_offset) for p in partitions}
        batch = _Batch(self, start, ends, wall_ms)
        end = batch.end(drain=target is not None)
        if (end.clock_ms, end.next_offsets()) == (
            start.clock_ms,
            start.next_offsets(),
        ):
            return start
        return replace(end, admitted_ms=wall_ms)

    def _placed(
        self, start: Position, partitions: Sequence[int], ends: Mapping[int, int]
    ) -> Position:
        """The start, with added partitions, and without what is gone."""
        earliest = self.offsets.earliest(partitions)
        placed = dict(start.partitions)
        skipped = start.skipped
        for partition in partitions:
            first = earliest[partition]
            here = placed.get(partition)
            if here is None:
                placed[partition] = PartitionPosition(first, 0, first)
                continue
            made_anew = here.next_offset > ends[partition] and not self._is_held(
                partition, here.next_offset
            )
            if here.next_offset >= first and not made_anew:
                continue
            if not self.skip_lost:
                raise RecordsLost(self.topic, partition, here.next_offset, first)
            skipped += max(0, first - here.next_offset)
            placed[partition] = here._replace(next_offset=first)
        return replace(start, partitions=placed, skipped=skipped)

    def _is_held(self, partition: int, offset: int) -> bool:
        """Whether the topic, apart from a target, reaches up to an offset."""
        return self.offsets.latest([partition])[partition] >= offset


class _Batch:
    """One plan: what is known of each partition between start and end."""

    def __init__(
        self,
        admission: Admission,
        start: Position,
        ends: Mapping[int, int],
        wall_ms: int,
    ) -> None:
        self._admission = admission
        self._start = start
        self._starts = start.next_offsets()
        self._ends = ends
        self._wall_ms = wall_ms
        self._scans: dict[int, Sequence[TimedOffset]] = {}
        self._row_limit = 0
        # T may not pass what a scan that met the row limit has seen.
        self._ceiling_ms: int | None = None

    def end(self, drain: bool) -> Position:
        starts = self._starts
        unread = {
            p: end - starts[p] for p, end in self._ends.items() if end > starts[p]
        }
        self._row_limit = self._rows_within_limits(unread)
        newest = self._newest()
        latest_ms = max(self._start.clock_ms, _common_clock(newest, drain))
        if sum(unread.values()) <= self._row_limit:
            return self._position(latest_ms, self._ends, newest)
        return self._aligned(latest_ms)

    def _rows_within_limits(self, unread: Mapping[int, int]) -> int:
        limits = self._admission.limits
        if sum(unread.values()) <= _UNSAMPLED_ROWS:
            return limits.rows
        mean = self._admission.mean_bytes({p: self._starts[p] for p in unread})
        return max(1, min(limits.rows, limits.size_bytes // max(1, mean)))

    def _aligned(self, latest_ms: int) -> Position:
        """The greatest T, at most the one given, whose records fit the limit."""
        low_ms, low = self._start.clock_ms, self._ends_at(self._start.clock_ms)
        if self._rows(low) > self._row_limit:
            # Late records alone are too many: they move no clock.
            return self._position(low_ms, self._part_of(self._starts, low))
        stride_ms, high_ms = _FIRST_STRIDE_MS, low_ms
        while True:  # Gallop, from the first record after T on.
            first_ms = max(high_ms, self._first_time_after(high_ms))
            last_ms = self._lowered(latest_ms)
            high_ms = min(first_ms + stride_ms, last_ms + 1)
            high = self._ends_at(high_ms)
            if self._rows(high) > self._row_limit:
                break
            last_ms = self._lowered(latest_ms)
            if high_ms > last_ms:
                return self._position(last_ms, high)
            low_ms, low = high_ms, high
            stride_ms *= 2
        while high_ms - low_ms > 1 and self._rows(low) < self._row_limit * 3 // 4:
            middle_ms = (low_ms + high_ms) // 2
            middle = self._ends_at(middle_ms)
            if self._rows(middle) > self._row_limit:
                high_ms, high = middle_ms, middle
            else:
                low_ms, low = middle_ms, middle
        if high_ms - low_ms > 1 or self._rows(low):
            return self._position(low_ms, low)
        # More records of one time than fit: cut inside them. T stays, and none of
        # them is later than it.
        return self._position(low_ms, self._part_of(low, high))

    def _lowered(self, clock_ms: int) -> int:
        if self._ceiling_ms is None:
            return clock_ms
        return max(self._start.clock_ms, min(clock_ms, self._ceiling_ms))

    def _part_of(
        self, low: Mapping[int, int], high: Mapping[int, int]
    ) -> dict[int, int]:
        room = self._row_limit - self._rows(low)
        ends = dict(low)
        for partition in sorted(high):
            taken = min(room, high[partition] - low[partition])
            ends[partition] += taken
            room -= taken
        return ends

    def _position(
        self,
        clock_ms: int,
        ends: Mapping[int, int],
        newest: Mapping[int, int] | None = None,
    ) -> Position:
        partitions = {
            p: here._replace(
                next_offset=ends.get(p, here.next_offset),
                # Read no further than T, records have no later time than before.
                newest_ms=max(here.newest_ms, (newest or {}).get(p, 0)),
            )
            for p, here in self._start.partitions.items()
        }
        return replace(self._start, clock_ms=clock_ms, partitions=partitions)

    def _rows(self, ends: Mapping[int, int]) -> int:
        return sum(end - self._starts[p] for p, end in ends.items())

    def _ends_at(self, clock_ms: int) -> dict[int, int]:
        """Where each partition's first record with at least this time lies."""
        found = self._admission.offsets.first_at_or_after(
            [p for p in self._ends if p not in self._scans], clock_ms
        )
        for partition, at in found.items():
            if at.offset < self._ends[partition] and self._is_future(at.timestamp_ms):
                # The index cannot look behind a record from the future.
                self._scan(partition)
        ends = {}
        for partition, end in self._ends.items():
            if partition in self._scans:
                ends[partition] = self._scanned_end(partition, clock_ms)
            else:
                offset = found[partition].offset if partition in found else end
                ends[partition] = min(end, max(self._starts[partition], offset))
        return ends

    def _first_time_after(self, clock_ms: int) -> int:
        """Time of the earliest unread record with at least this time."""
        found = self._admission.offsets.first_at_or_after(list(self._ends), clock_ms)
        times = [
            at.timestamp_ms
            for partition, at in found.items()
            if at.offset < self._ends[partition]
            and not self._is_future(at.timestamp_ms)
        ]
        return min(times, default=clock_ms)

    def _newest(self) -> dict[int, int]:
        """Greatest record time of each partition up to its end, Unix ms.

        Of a partition that had to be scanned, up to the end of the scan.
        """
        found = self._admission.offsets.newest(list(self._ends))
        newest = {}
        for partition, at in found.items():
            here = self._start.partitions[partition]
            read_ms = here.newest_ms
            if here.next_offset >= self._ends[partition]:
                known = read_ms
            elif self._is_greatest(partition, at):
                known = at.timestamp_ms
            else:
                scanned = map(self._valid_ms, self._scan(partition))
                known = max(read_ms, max(scanned, default=0))
            if known:
                newest[partition] = known
        return newest

    def _is_greatest(self, partition: int, at: TimedOffset) -> bool:
        """Whether the broker's newest record is the greatest up to the end."""
        here = self._start.partitions[partition]
        if at.offset < here.next_offset:
            # Read already; if it moved no clock then, it was from the future.
            return at.timestamp_ms <= max(here.newest_ms, self._start.clock_ms)
        return at.offset < self._ends[partition] and not self._is_future(
            at.timestamp_ms
        )

    def _scan(self, partition: int) -> Sequence[TimedOffset]:
        if partition not in self._scans:
            start = self._starts[partition]
            end = min(self._ends[partition], start + self._row_limit)
            scan = self._admission.scan_times(partition, start, end)
            self._scans[partition] = scan
            if end < self._ends[partition]:
                seen_ms = max(map(self._valid_ms, scan), default=0)
                self._ceiling_ms = min(seen_ms, self._ceiling_ms or seen_ms)
        return self._scans[partition]

    def _valid_ms(self, record: TimedOffset) -> int:
        """A record's time; 0 if it lies in the future and moves no clock."""
        return 0 if self._is_future(record.timestamp_ms) else record.timestamp_ms

    def _scanned_end(self, partition: int, clock_ms: int) -> int:
        for record in self._scans[partition]:
            if self._valid_ms(record) >= clock_ms:
                return record.offset
        return min(self._ends[partition], self._starts[partition] + self._row_limit)

    def _is_future(self, timestamp_ms: int) -> bool:
        return is_future(timestamp_ms, self._wall_ms)


def _common_clock(newest: Mapping[int, int], drain: bool) -> int:
    """T when all is read: the least of the newest times, idle partitions apart."""
    if not newest:
        return 0
    greatest = max(newest.values())
    if drain:
        return greatest
    return min(ms for ms in newest.values() if ms >= greatest - IDLE_PARTITION_MS)
