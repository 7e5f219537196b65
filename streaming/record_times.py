"""Reliable record times for the unread records of each partition.

The broker's index finds the first record at or after a time, without reading records.
The index can instead return an entry of one of the following kinds. Such an entry hides
the records after it, so the result is useless:

- Records from the future, which do not advance the job's clock (docs/records.md).
- Ends of transactions, which are not records. An end of a transaction has the wall time
  of the commit, however old the transaction's records are.

If the index returns an entry of one of these kinds, the partition is *scanned*: the
times are read from its records. If the records after an entry may show that the entry
is from the future, the partition is also scanned (`sds_core.observer.ahead`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple, Protocol

from connectors.kafka.offsets import TimedOffset, Topic
from sds_core.observer.ahead import (
    LOOKAHEAD,
    Foresight,
    is_at_odds,
    was_written_by_then,
)
from sds_core.observer.record import MAX_AHEAD_MS, is_future
from streaming.position import Unread

_TRUSTED_STEP_MS = 10_000
"""Maximum time by which an entry may be ahead of the job's clock, ms.

If an entry is further ahead, `is_record` checks it. The maximum is twice the heartbeat
interval.
"""


class Offsets(Protocol):
    """The broker's index of one topic; see `connectors.kafka.offsets.TopicOffsets`."""

    def describe(self) -> Topic:
        """The topic's id and partitions."""

    def earliest(self, partitions: Collection[int]) -> dict[int, int]:
        """For each partition, the first offset that the broker still holds."""

    def latest(self, partitions: Collection[int]) -> dict[int, int]:
        """For each partition, the offset after the last committed record."""

    def newest(self, partitions: Collection[int]) -> dict[int, TimedOffset]:
        """For each partition, the first entry with the partition's maximum time."""

    def first_at_or_after(
        self, partitions: Collection[int], timestamp_ms: int
    ) -> dict[int, TimedOffset]:
        """For each partition, the first entry at or after a time, if one exists."""


ReadTimes = Callable[[int, int, int], Sequence[TimedOffset]]
"""(partition, start, end) -> offset and time of each record in [start, end)."""

IsRecord = Callable[[int, int], bool]
"""(partition, offset) -> whether the offset holds a record, not the end of a
transaction."""


class Scan(NamedTuple):
    """Record times that were read from one partition.

    Attributes:
        offsets: Offset of each record, ascending, shape (n,).
        peaks: For each record, the maximum time of all scanned records up to and
            including it, Unix ms, shape (n,). Records from the future count as 0.
        end: Offset after the scanned range.
    """

    offsets: list[int]
    peaks: list[int]
    end: int

    @property
    def peak_ms(self) -> int:
        """Maximum time of all scanned records, Unix ms; 0 if no record was scanned."""
        return self.peaks[-1] if self.peaks else 0

    def first_at_or_after(self, clock_ms: int) -> TimedOffset | None:
        """The first record at or after `clock_ms`; None if all are earlier."""
        index = bisect_left(self.peaks, clock_ms)
        if index == len(self.peaks):
            return None
        return TimedOffset(self.offsets[index], self.peaks[index])


@dataclass(frozen=True, slots=True)
class RecordTimes:
    """Looks up record times in the unread range of each partition.

    An object never changes, so a repeated lookup gives the same result. If a lookup
    must scan a partition, it returns a new object that includes the scan.

    Attributes:
        read_times: Reads times from records, if the index cannot be trusted.
        is_record: Reads one offset. The function should cache its results, because
            lookups call it repeatedly with the same offset.
        unread: The unread ranges. `unread.believed_ms`, and the records up to each
            partition's end (`unread.held`), decide which records are from the future.
        last_ms: Latest time to which records can advance the job's clock, Unix ms.
        scan_rows: Maximum number of offsets that one scan reads.
        scans: The scans that lookups have made so far, by partition.
    """

    offsets: Offsets
    read_times: ReadTimes
    is_record: IsRecord
    unread: Unread
    last_ms: int
    scan_rows: int
    scans: Mapping[int, Scan] = field(default_factory=dict)

    @property
    def unmoved(self) -> Collection[int]:
        """Partitions in which no unread record can advance the job's clock.

        A scan has shown that such a partition has only records from the future or of
        aborted transactions, and ends of transactions.
        """
        return {
            partition
            for partition, scan in self.scans.items()
            if scan.end == self.unread.ends[partition] and not scan.peak_ms
        }

    def latest_clock_ms(self, limit_ms: int) -> int:
        """Return the latest time to which the job's clock may advance, Unix ms.

        This time is at most `limit_ms`. If a scan has not reached the end of the unread
        range, the time is also at most the maximum time in the scan.
        """
        peaks = [
            scan.peak_ms
            for partition, scan in self.scans.items()
            if scan.end < self.unread.ends[partition]
        ]
        if not peaks:
            return limit_ms
        return max(self.unread.start.clock_ms, min(limit_ms, *peaks))

    def readable_ends(self) -> dict[int, int]:
        """The end of each unread range; in a scanned partition, the end of the scan."""
        return {**self.unread.ends, **{p: scan.end for p, scan in self.scans.items()}}

    def first_at_or_after(
        self, clock_ms: int
    ) -> tuple[dict[int, TimedOffset], RecordTimes]:
        """Return the first record at or after `clock_ms` in each unread partition.

        Partitions without such a record are omitted. If the record comes from the
        index, it may lie outside the unread range. The second result is a `RecordTimes`
        that includes the scans of this lookup.
        """
        unread = [p for p in self.unread.partitions if p not in self.scans]
        found = self.offsets.first_at_or_after(unread, clock_ms) if unread else {}
        times = self.with_scans(
            partition
            for partition, at in found.items()
            if at.offset < self.unread.ends[partition]
            and self._hides(partition, at, clock_ms)
        )
        for partition, scan in times.scans.items():
            found.pop(partition, None)
            record = scan.first_at_or_after(clock_ms)
            if record is not None:
                found[partition] = record
        return found, times

    def newest_ms(
        self, newest: Mapping[int, TimedOffset]
    ) -> tuple[dict[int, int], RecordTimes]:
        """Return the maximum record time of each partition, Unix ms.

        The maximum is taken over all records before the end of the unread range. If it
        is after `last_ms`, `last_ms` is returned instead. Partitions that never had a
        record are omitted. The second result is a `RecordTimes` that includes the scans
        of this lookup. `newest` is the result of `Offsets.newest`.
        """
        known = {p: here.newest_ms for p, here in self.unread.start.partitions.items()}
        trusted = {
            partition: at.timestamp_ms
            for partition, at in newest.items()
            if (
                at.offset < self.unread.ends[partition]
                or at.timestamp_ms > self.last_ms
            )
            and not self._hides(partition, at, known[partition])
            and not self._is_doubtful(partition, at)
        }
        times = self.with_scans(p for p in self.unread.partitions if p not in trusted)
        peaks = {p: scan.peak_ms for p, scan in times.scans.items()} | trusted
        greatest = {p: max(ms, peaks.get(p, 0)) for p, ms in known.items()}
        return {p: min(ms, self.last_ms) for p, ms in greatest.items() if ms}, times

    def scan(self, partition: int, start: int, end: int) -> Scan:
        """Read the times of a partition's records at the offsets [start, end)."""
        behind = max(end, min(self.unread.held[partition], end + LOOKAHEAD))
        records = self.read_times(partition, start, behind)
        foresight = Foresight[TimedOffset](
            self._known_ms(partition),
            self.unread.believed_ms,
            self.unread.looks[partition],
        )
        settled = [one for record in records for one in foresight.add(record)]
        settled += foresight.finish()
        settled = [one for one in settled if one[0].offset < end]
        times = (
            0 if is_future(record.timestamp_ms, written_ms) else record.timestamp_ms
            for record, written_ms in settled
        )
        return Scan(
            [record.offset for record, _ in settled], list(accumulate(times, max)), end
        )

    def checked(self, clock_ms: int) -> RecordTimes:
        """Scan the partitions in which the index may be wrong about `clock_ms`.

        In such a partition, the first record at or after `clock_ms` may be from the
        future. Returns a `RecordTimes` that includes the scans.
        """
        found, times = self.first_at_or_after(clock_ms)
        return times.with_scans(
            partition
            for partition, at in found.items()
            if partition not in times.scans
            and at.offset < self.unread.ends[partition]
            and self._is_doubtful(partition, at)
        )

    def with_scans(self, partitions: Iterable[int]) -> RecordTimes:
        """Scan partitions, and return a `RecordTimes` that includes these scans."""
        scans = dict(self.scans)
        for partition in partitions:
            start = self.unread.start.partitions[partition].next_offset
            end = min(self.unread.ends[partition], start + self.scan_rows)
            scans[partition] = self.scan(partition, start, end)
        return replace(self, scans=scans)

    def _hides(self, partition: int, at: TimedOffset, clock_ms: int) -> bool:
        known_ms = self._known_ms(partition)
        if at.offset < self.unread.start.partitions[partition].next_offset:
            # An earlier batch has read this entry. If the entry is nevertheless later
            # than the job's clock, it is from the future.
            return at.timestamp_ms > known_ms
        if is_future(at.timestamp_ms, self.unread.believed_ms):
            return True
        clock_ms = max(clock_ms, known_ms)
        return at.timestamp_ms - clock_ms > _TRUSTED_STEP_MS and not self.is_record(
            partition, at.offset
        )

    def _is_doubtful(self, partition: int, at: TimedOffset) -> bool:
        """Whether later records may reveal that an entry is from the future.

        If they may, a scan must decide, because only a scan knows all record times
        before the entry.
        """
        if at.timestamp_ms <= self._known_ms(partition) + MAX_AHEAD_MS or (
            was_written_by_then(at, self.unread.looks[partition])
        ):
            return False
        first = at.offset + 1
        end = min(self.unread.held[partition], first + LOOKAHEAD)
        return end > first and any(
            is_at_odds(at.timestamp_ms, behind.timestamp_ms)
            for behind in self.read_times(partition, first, end)
        )

    def _known_ms(self, partition: int) -> int:
        return max(
            self.unread.start.partitions[partition].newest_ms,
            self.unread.start.clock_ms,
        )
