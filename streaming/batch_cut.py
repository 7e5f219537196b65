"""Finds the offset at which a batch ends in each partition.

All partitions end at the same record time T, and the batch has a maximum number of
records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from streaming.position import count_rows
from streaming.record_times import RecordTimes

_FIRST_STRIDE_MS = 1_000


class Cut(NamedTuple):
    """A possible end of a batch: usually, all partitions end at the same record time.

    Attributes:
        clock_ms: Record time of the cut, Unix ms. No record after the cut has an
            earlier time, except late records.
        next_ms: Time of the earliest record after the cut; `clock_ms` if none exists.
        ends: Offset at which the batch ends in each partition; usually, the offset of
            the first record whose time is `clock_ms` or later.
        times: Record times, including the scans that were needed to find the cut.
    """

    clock_ms: int
    next_ms: int
    ends: dict[int, int]
    times: RecordTimes

    @property
    def rows(self) -> int:
        """Number of offsets from the start of the batch to the cut."""
        return count_rows(self.times.unread.start.next_offsets(), self.ends)


def aligned_end(times: RecordTimes, latest_ms: int, row_limit: int) -> Cut:
    """Return a cut up to `latest_ms`, for a batch of at most `row_limit` records.

    The result is the latest such cut, or a cut that fills at least three quarters of
    the limit. If the records with the same time alone exceed the limit, the batch ends
    between these records, and T is their time. If late records alone exceed the limit,
    T stays at the time of the previous batch.
    """
    while True:
        end = _aligned_end(times, latest_ms, row_limit)
        # The search trusts Kafka's index. If the index returns a record from the
        # future, the batch may end there, although records before T follow at later
        # offsets. The cut is therefore checked. If a scan was needed, the search is
        # repeated with the scan.
        checked = end.times.checked(end.clock_ms)
        if len(checked.scans) == len(times.scans):
            return end
        times = checked


def _aligned_end(times: RecordTimes, latest_ms: int, row_limit: int) -> Cut:
    # The search doubles its stride until a cut has too many records, and then bisects.
    starts = times.unread.start.next_offsets()
    low = cut_at(times, times.unread.start.clock_ms)
    if low.rows > row_limit:
        return low._replace(ends=part_of(starts, low.ends, row_limit))
    low, high = gallop(low, latest_ms, row_limit)
    if high.rows <= row_limit:
        return high._replace(clock_ms=high.times.latest_clock_ms(latest_ms))
    low, high, times = bisect(low, high, latest_ms, row_limit)
    low = low._replace(times=times)
    if high.clock_ms - low.clock_ms > 1 or low.rows:
        return low
    # The records with the time of `low` alone exceed the limit. This time becomes T,
    # because no record of the batch is later.
    return low._replace(ends=part_of(low.ends, high.ends, row_limit))


def cut_at(times: RecordTimes, clock_ms: int) -> Cut:
    """The cut at the record time `clock_ms`."""
    found, times = times.first_at_or_after(clock_ms)
    starts = times.unread.start.next_offsets()
    ends = {
        p: min(end, max(starts[p], found[p].offset)) if p in found else end
        for p, end in times.readable_ends().items()
    }
    behind = [
        at.timestamp_ms for p, at in found.items() if at.offset < times.unread.ends[p]
    ]
    next_ms = min(behind, default=clock_ms)
    return Cut(clock_ms, next_ms, ends, times)


def gallop(low: Cut, latest_ms: int, row_limit: int) -> tuple[Cut, Cut]:
    """Search in strides that double; return the last cut that fits, and the next cut.

    The time of the first returned cut is that of the earliest record after this cut,
    but at most the latest time. The second returned cut has more than `row_limit`
    records, or lies after the latest time.
    """
    times, stride_ms = low.times, _FIRST_STRIDE_MS
    while True:
        last_ms = times.latest_clock_ms(latest_ms)
        low = low._replace(clock_ms=max(low.clock_ms, min(low.next_ms, last_ms)))
        high = cut_at(times, min(low.clock_ms + stride_ms, last_ms + 1))
        times = high.times
        last_ms = times.latest_clock_ms(latest_ms)
        if high.clock_ms > last_ms + 1:
            # To find this cut, a scan was needed. The scan has shown that the latest
            # time is before the cut, so the search tries a cut at an earlier time.
            continue
        if high.rows > row_limit or high.clock_ms > last_ms:
            return low, high
        low = high
        stride_ms *= 2


def bisect(
    low: Cut, high: Cut, latest_ms: int, row_limit: int
) -> tuple[Cut, Cut, RecordTimes]:
    """Narrow the range between a cut that fits the limit and a later cut that does not.

    The search ends when the cuts are 1 ms apart, or when the earlier cut fills three
    quarters of the limit. A fuller batch is not worth further steps, because every step
    costs a request to the broker.
    """
    times = high.times
    enough = max(1, row_limit * 3 // 4)
    while high.clock_ms - low.clock_ms > 1 and low.rows < enough:
        middle = cut_at(times, (low.clock_ms + high.clock_ms) // 2)
        times = middle.times
        is_too_far = middle.clock_ms > times.latest_clock_ms(latest_ms)
        if middle.rows > row_limit or is_too_far:
            high = middle
        else:
            low = middle
    return low, high, times


def part_of(
    low: Mapping[int, int], high: Mapping[int, int], rows: int
) -> dict[int, int]:
    """Return the offsets `low`, moved towards `high` by at most `rows` in total.

    The offset of a partition is moved to its end in `high` before the next partition's.
    """
    ends = dict(low)
    for partition in sorted(high):
        taken = min(rows, high[partition] - low[partition])
        ends[partition] += taken
        rows -= taken
    return ends
