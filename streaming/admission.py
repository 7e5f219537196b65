"""How far the next batch may read.

Every batch ends at one common record time T over all partitions, so that on
catch-up no partition runs ahead of another and T is a clock that holds for every
channel (architecture, decision 3). When all that is there fits into one batch it is
read to the end, and T is the least of the partitions' newest record times.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple, Protocol

from connectors.kafka.offsets import TimedOffset
from connectors.kafka.settings import RecordsLost
from sds_core.observer.record import MAX_AHEAD_MS, is_future
from streaming.position import PartitionPosition, Position
from streaming.settings import BatchLimits, Window

IDLE_PARTITION_MS = 30_000
"""A partition without a record for this long does not hold T back (model, 3).

By wall time: in event time a topic that is filled faster than life, or by writers of
which one lags, would have idle partitions whose records are only on their way."""

LATE_MS = 3_600_000
"""A window's records are looked for up to this far behind its end.

The horizon: a record that came later would tell of nothing that is still looked for
(model, 4). And brokers by default take no record stamped further ahead than this, so
that one with a wrong clock does not hide the window's records behind it."""

_FIRST_STRIDE_MS = 1_000
_TRUSTED_STEP_MS = 10_000
"""Twice the time between heartbeats."""
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
        window: Of record times, to drain no more than it; None for all there is.
    """

    topic: str
    offsets: Offsets
    scan_times: ScanTimes
    mean_bytes: MeanBytes
    limits: BatchLimits = field(default_factory=BatchLimits)
    skip_lost: bool = False
    window: Window | None = None

    def target(self) -> Target:
        """The end of what the topic holds now, or of its part with the window."""
        partitions = self.offsets.partitions()
        ends = self.offsets.latest(partitions)
        if self.window is not None:
            behind = self.offsets.first_at_or_after(
                partitions, self.window.last_ms + LATE_MS + 1
            )
            for partition, at in behind.items():
                # The end of a transaction tells nothing of the records behind it.
                if self.is_record(partition, at.offset):
                    ends[partition] = min(ends[partition], at.offset)
        return Target(ends)

    def is_record(self, partition: int, offset: int) -> bool:
        """Whether an offset holds a record, and not the end of a transaction."""
        return bool(self.scan_times(partition, offset, offset + 1))

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
        placed = self._placed(start, partitions, ends)
        ends = {p: max(ends[p], placed.partitions[p].next_offset) for p in partitions}
        batch = _Batch(self, placed, ends, wall_ms)
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
        placed = {}
        skipped = start.skipped
        for partition in start.partitions.keys() - set(partitions):
            # Kafka takes no partition away: the topic was made anew.
            self._lose(partition, 0, start.partitions[partition].next_offset)
        for partition in partitions:
            first = earliest[partition]
            here = start.partitions.get(partition)
            if here is None:
                here = PartitionPosition(first)
            elif here.next_offset < first:
                self._lose(partition, here.next_offset, first)
                skipped += first - here.next_offset
                here = here._replace(next_offset=first)
            elif here.next_offset > ends[partition]:
                # A target may end before the start. What is held may not.
                held = self.offsets.latest([partition])[partition]
                if here.next_offset > held:
                    self._lose(partition, held, here.next_offset)
                    here = here._replace(next_offset=first)
            placed[partition] = here
        return replace(start, partitions=placed, skipped=skipped)

    def _lose(self, partition: int, first: int, end: int) -> None:
        if not self.skip_lost:
            raise RecordsLost(self.topic, partition, first, end)


class _Cut(NamedTuple):
    """Where all partitions reach one record time.

    Attributes:
        clock_ms: The time; nothing before it lies behind the cut.
        next_ms: Time of the earliest record behind it; `clock_ms` if there is none.
        ends: Offset of the first record with at least this time.
        rows: Offsets from the batch's start to the ends.
    """

    clock_ms: int
    next_ms: int
    ends: dict[int, int]
    rows: int


class _Scan(NamedTuple):
    """What reading told of the next records of a partition.

    Attributes:
        offsets: Of the records.
        peaks: Greatest time up to each of them; the future ones have none.
        end: Offset behind what was read.
    """

    offsets: list[int]
    peaks: list[int]
    end: int

    @property
    def peak_ms(self) -> int:
        """Greatest time of all; 0 if none has one."""
        return self.peaks[-1] if self.peaks else 0

    def first_at_or_after(self, clock_ms: int) -> TimedOffset | None:
        """The first record with at least a time."""
        index = bisect_left(self.peaks, clock_ms)
        if index == len(self.peaks):
            return None
        return TimedOffset(self.offsets[index], self.peaks[index])


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
        self._ends = dict(ends)
        self._wall_ms = wall_ms
        # No record that counts is later.
        self._last_ms = wall_ms + MAX_AHEAD_MS
        if admission.window is not None:
            self._last_ms = min(self._last_ms, admission.window.last_ms)
        self._scans: dict[int, _Scan] = {}
        self._holds_record: dict[tuple[int, int], bool] = {}
        self._unread: dict[int, int] = {}
        self._row_limit = 0
        # T may not pass what a scan that met the row limit has seen.
        self._ceiling_ms: int | None = None

    def end(self, drain: bool) -> Position:
        found = None if drain else self._find_newest()
        if found:
            for partition, at in found.items():
                # One that came since the ends were asked for belongs to the batch:
                # else a scan would have to tell what is the newest before it.
                self._ends[partition] = max(self._ends[partition], at.offset + 1)
        self._unread = {
            p: end - self._starts[p]
            for p, end in self._ends.items()
            if end > self._starts[p]
        }
        rows = sum(self._unread.values())
        self._row_limit = self._rows_within_limits(self._unread)
        if drain and rows > self._row_limit:
            if self._start.clock_ms >= self._last_ms:
                # What is left moves no clock, in whatever order it is read.
                ends = self._part_of(self._starts, self._ends)
                return self._position(self._start.clock_ms, ends)
            # Not all can be read, so that T ends before the last record anyway.
            return self._aligned(self._last_ms)
        newest = self._newest(self._find_newest() if found is None else found)
        clock_ms = max(self._start.clock_ms, self._common_clock(newest, drain))
        if rows <= self._row_limit:
            return self._position(clock_ms, self._ends, newest)
        end = self._aligned(clock_ms)
        if end.next_offsets() == self._starts and end.clock_ms == self._start.clock_ms:
            return self._beyond_clock(max(newest.values(), default=clock_ms))
        return end

    def _rows_within_limits(self, unread: Mapping[int, int]) -> int:
        limits = self._admission.limits
        if sum(unread.values()) <= _UNSAMPLED_ROWS:
            return limits.rows
        mean = self._admission.mean_bytes({p: self._starts[p] for p in unread})
        return max(1, min(limits.rows, limits.size_bytes // max(1, mean)))

    def _aligned(self, latest_ms: int) -> Position:
        """The greatest T, at most the one given, whose records fit the limit."""
        low = self._cut(self._start.clock_ms)
        if low.rows > self._row_limit:
            # Late records alone are too many: they move no clock.
            return self._position(low.clock_ms, self._part_of(self._starts, low.ends))
        stride_ms = _FIRST_STRIDE_MS
        while True:  # Gallop, from the earliest record behind the cut on.
            last_ms = self._lowered(latest_ms)
            low = low._replace(clock_ms=max(low.clock_ms, min(low.next_ms, last_ms)))
            high = self._cut_up_to(low.clock_ms + stride_ms, latest_ms)
            if high.rows > self._row_limit:
                break
            last_ms = self._lowered(latest_ms)
            if high.clock_ms > last_ms:
                return self._position(last_ms, high.ends)
            low = high
            stride_ms *= 2
        enough = max(1, self._row_limit * 3 // 4)
        while high.clock_ms - low.clock_ms > 1 and low.rows < enough:
            middle = self._cut((low.clock_ms + high.clock_ms) // 2)
            if middle.rows > self._row_limit or (
                middle.clock_ms > self._lowered(latest_ms)
            ):
                high = middle
            else:
                low = middle
        if high.clock_ms - low.clock_ms > 1 or low.rows:
            return self._position(low.clock_ms, low.ends)
        # More records of one time than fit: cut inside them. T stays, and none of
        # them is later than it.
        return self._position(low.clock_ms, self._part_of(low.ends, high.ends))

    def _beyond_clock(self, latest_ms: int) -> Position:
        """A batch behind T, which a partition holds back that has fallen silent."""
        ends = self._aligned(latest_ms).next_offsets()
        newest = {
            p: self._read_times(p, self._starts[p], end).peak_ms
            for p, end in ends.items()
        }
        return self._position(self._start.clock_ms, ends, newest)

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
            p: PartitionPosition(
                next_offset=ends.get(p, here.next_offset),
                # Read no further than T, records have no later time than before.
                newest_ms=max(here.newest_ms, (newest or {}).get(p, 0)),
                batch_start=here.next_offset,
                moved_ms=self._wall_ms if p in self._unread else here.moved_ms,
            )
            for p, here in self._start.partitions.items()
        }
        return replace(
            self._start,
            clock_ms=clock_ms,
            records=self._start.records + self._rows(ends),
            partitions=partitions,
        )

    def _rows(self, ends: Mapping[int, int]) -> int:
        return sum(end - self._starts[p] for p, end in ends.items())

    def _cut_up_to(self, clock_ms: int, latest_ms: int) -> _Cut:
        """A cut that does not pass a T, which a scan on the way may lower."""
        while True:
            cut = self._cut(min(clock_ms, self._lowered(latest_ms) + 1))
            if cut.clock_ms <= self._lowered(latest_ms) + 1:
                return cut

    def _cut(self, clock_ms: int) -> _Cut:
        found = self._first_at_or_after(clock_ms)
        ends = {
            p: min(end, max(self._starts[p], found[p].offset)) if p in found else end
            for p, end in self._scanned_ends().items()
        }
        times = [
            at.timestamp_ms for p, at in found.items() if at.offset < self._ends[p]
        ]
        return _Cut(clock_ms, min(times, default=clock_ms), ends, self._rows(ends))

    def _scanned_ends(self) -> dict[int, int]:
        """Each partition's end, or that of its scan."""
        return self._ends | {p: scan.end for p, scan in self._scans.items()}

    def _first_at_or_after(self, clock_ms: int) -> dict[int, TimedOffset]:
        """The first record of each partition with at least this time."""
        unread = [p for p, end in self._ends.items() if end > self._starts[p]]
        found = self._admission.offsets.first_at_or_after(
            [p for p in unread if p not in self._scans], clock_ms
        )
        for partition, at in found.items():
            if at.offset < self._ends[partition] and self._is_hiding(
                partition, at, clock_ms
            ):
                self._scan(partition)
        for partition, scan in self._scans.items():
            found.pop(partition, None)
            record = scan.first_at_or_after(clock_ms)
            if record is not None:
                found[partition] = record
        return found

    def _find_newest(self) -> dict[int, TimedOffset]:
        return self._admission.offsets.newest(list(self._ends))

    def _newest(self, found: Mapping[int, TimedOffset]) -> dict[int, int]:
        """Greatest record time of each partition up to its end, Unix ms.

        Of a partition that had to be scanned, up to the end of the scan. Behind a
        window it does not matter where: T ends with the window.
        """
        newest = {}
        for partition, end in self._ends.items():
            known = self._start.partitions[partition].newest_ms
            at = found.get(partition)
            if (
                at is not None
                and (at.offset < end or at.timestamp_ms > self._last_ms)
                and not self._is_hiding(partition, at, known)
            ):
                known = max(known, at.timestamp_ms)
            elif end > self._starts[partition]:
                known = max(known, self._scan(partition).peak_ms)
            if known:
                newest[partition] = min(known, self._last_ms)
        return newest

    def _is_hiding(self, partition: int, at: TimedOffset, clock_ms: int) -> bool:
        """Whether what the broker's index found moves no clock.

        Then the index cannot tell of the records behind it.
        """
        here = self._start.partitions[partition]
        clock_ms = max(clock_ms, here.newest_ms, self._start.clock_ms)
        if at.offset < here.next_offset:
            # It moved none when it was read.
            return at.timestamp_ms > clock_ms
        if self._is_future(at.timestamp_ms):
            return True
        # The end of a transaction has the wall time of its commit. Few live records
        # are so far ahead of the clock that they must be looked at.
        return at.timestamp_ms - clock_ms > _TRUSTED_STEP_MS and not self._is_record(
            partition, at.offset
        )

    def _is_record(self, partition: int, offset: int) -> bool:
        key = (partition, offset)
        if key not in self._holds_record:
            self._holds_record[key] = self._admission.is_record(partition, offset)
        return self._holds_record[key]

    def _scan(self, partition: int) -> _Scan:
        if partition not in self._scans:
            start = self._starts[partition]
            end = min(self._ends[partition], start + self._row_limit)
            scan = self._scans[partition] = self._read_times(partition, start, end)
            if end < self._ends[partition]:
                ceilings = [scan.peak_ms]
                if self._ceiling_ms is not None:
                    ceilings.append(self._ceiling_ms)
                self._ceiling_ms = min(ceilings)
        return self._scans[partition]

    def _read_times(self, partition: int, start: int, end: int) -> _Scan:
        records = self._admission.scan_times(partition, start, end)
        times = (
            0 if self._is_future(record.timestamp_ms) else record.timestamp_ms
            for record in records
        )
        return _Scan(
            [record.offset for record in records], list(accumulate(times, max)), end
        )

    def _is_future(self, timestamp_ms: int) -> bool:
        return is_future(timestamp_ms, self._wall_ms)

    def _common_clock(self, newest: Mapping[int, int], drain: bool) -> int:
        """T when all is read: the least of the newest times, idle partitions apart."""
        greatest = max(newest.values(), default=0)
        if drain:
            return greatest
        held = (ms for p, ms in newest.items() if not self._is_idle(p))
        return min(held, default=greatest)

    def _is_idle(self, partition: int) -> bool:
        moved_ms = self._start.partitions[partition].moved_ms
        return (
            partition not in self._unread
            and self._wall_ms - moved_ms > IDLE_PARTITION_MS
        )
