"""Reliable record times for the unread records of each partition.

The broker's index finds the first record at or after a time, without reading records.
Entries of two kinds hide later records, and make the result of the index useless:

- Records from the future, which move no clock (docs/records.md).
- Ends of transactions, which are not records. An end of a transaction has the wall time
  of the commit, however old the transaction's records are.

If the index returns an entry of these two kinds, the partition is *scanned*: the times
of its records are read instead. If the records after an entry may show that the entry
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
"""An entry is trusted if it is at most this far ahead of the clock: twice the interval
of heartbeats."""


class Offsets(Protocol):
    """The broker's index of one topic; see `connectors.kafka.offsets.TopicOffsets`."""

    def describe(self) -> Topic:
        """The topic's id and partitions."""

    def earliest(self, partitions: Collection[int]) -> dict[int, int]:
        """First offset that the broker still holds."""

    def latest(self, partitions: Collection[int]) -> dict[int, int]:
        """Offset after the last committed record."""

    def newest(self, partitions: Collection[int]) -> dict[int, TimedOffset]:
        """First entry with the maximum time."""

    def first_at_or_after(
        self, partitions: Collection[int], timestamp_ms: int
    ) -> dict[int, TimedOffset]:
        """First entry of each partition at or after a time, if one exists."""


ReadTimes = Callable[[int, int, int], Sequence[TimedOffset]]
"""(partition, start, end) -> offset and time of each record in [start, end)."""

IsRecord = Callable[[int, int], bool]
"""(partition, offset) -> whether the offset holds a record, not the end of a
transaction."""


class Scan(NamedTuple):
    """Record times that were read from one partition.

    Attributes:
        offsets: Offset of each record, ascending, shape (n,).
        peaks: Maximum time up to and including each record, Unix ms, shape (n,); future
            records count as 0.
        end: Offset after the scanned range.
    """

    offsets: list[int]
    peaks: list[int]
    end: int

    @property
    def peak_ms(self) -> int:
        """Maximum time of all records; 0 without records."""
        return self.peaks[-1] if self.peaks else 0

    def first_at_or_after(self, clock_ms: int) -> TimedOffset | None:
        """The first record at or after `clock_ms`; None if all are earlier."""
        index = bisect_left(self.peaks, clock_ms)
        if index == len(self.peaks):
            return None
        return TimedOffset(self.offsets[index], self.peaks[index])


@dataclass(frozen=True, slots=True)
class RecordTimes:
    """Record times of each partition's unread range, as of one wall time.

    This object never changes, so a repeated lookup gives the same result. A lookup that
    scans returns a new object, which includes the scans.

    Attributes:
        read_times: Reads the times from the records, where the index cannot be trusted.
        is_record: Reads one offset; should be cached, because it is called repeatedly.
        unread: The unread ranges. The wall time, and the records up to each partition's
            end, decide which records are from the future.
        last_ms: Latest time of a record that counts, Unix ms.
        scan_rows: Maximum number of offsets that one scan reads.
        scans: Scans made so far, by partition.
    """

    offsets: Offsets
    read_times: ReadTimes
    is_record: IsRecord
    unread: Unread
    last_ms: int
    scan_rows: int
    scans: Mapping[int, Scan] = field(default_factory=dict)

    def latest_clock_ms(self, limit_ms: int) -> int:
        """Return the maximum clock that the scans and `limit_ms` allow, Unix ms."""
        peaks = [
            scan.peak_ms
            for partition, scan in self.scans.items()
            if scan.end < self.unread.ends[partition]
        ]
        if not peaks:
            return limit_ms
        return max(self.unread.start.clock_ms, min(limit_ms, *peaks))

    def readable_ends(self) -> dict[int, int]:
        """The end of each partition; for a scanned partition, the end of its scan."""
        return {**self.unread.ends, **{p: scan.end for p, scan in self.scans.items()}}

    def first_at_or_after(
        self, clock_ms: int
    ) -> tuple[dict[int, TimedOffset], RecordTimes]:
        """The first unread record of each partition at or after `clock_ms`.

        Partitions without such a record are omitted. A record may lie outside the
        unread range. Also returns a new `RecordTimes` with the necessary scans.
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
        """Maximum record time of each partition up to its end, Unix ms.

        Times after `last_ms` are returned as `last_ms`. Partitions that never had a
        record are omitted. Also returns a new `RecordTimes` with the necessary scans.
        `newest` is the result of `Offsets.newest`.
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
        """Read the record times in [start, end) of a partition."""
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
        """Return record times with the scans that make a cut at `clock_ms` reliable."""
        found, times = self.first_at_or_after(clock_ms)
        return times.with_scans(
            partition
            for partition, at in found.items()
            if partition not in times.scans
            and at.offset < self.unread.ends[partition]
            and self._is_doubtful(partition, at)
        )

    def with_scans(self, partitions: Iterable[int]) -> RecordTimes:
        """The record times, with scans of further partitions."""
        scans = dict(self.scans)
        for partition in partitions:
            start = self.unread.start.partitions[partition].next_offset
            end = min(self.unread.ends[partition], start + self.scan_rows)
            scans[partition] = self.scan(partition, start, end)
        return replace(self, scans=scans)

    def _hides(self, partition: int, at: TimedOffset, clock_ms: int) -> bool:
        known_ms = self._known_ms(partition)
        if at.offset < self.unread.start.partitions[partition].next_offset:
            # If an entry that was read is later than the clock, it is from the future.
            return at.timestamp_ms > known_ms
        if is_future(at.timestamp_ms, self.unread.believed_ms):
            return True
        clock_ms = max(clock_ms, known_ms)
        return at.timestamp_ms - clock_ms > _TRUSTED_STEP_MS and not self.is_record(
            partition, at.offset
        )

    def _is_doubtful(self, partition: int, at: TimedOffset) -> bool:
        """Whether later records may reveal that an entry is from the future.

        Only a scan computes the clock before the entry, and thus can decide this.
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
