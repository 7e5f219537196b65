"""Finds where a batch ends in each partition: at one record time T, within a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from streaming.position import count_rows
from streaming.record_times import RecordTimes

_FIRST_STRIDE_MS = 1_000


class Cut(NamedTuple):
    """A possible end of a batch, usually where all partitions reach one record time.

    Attributes:
        clock_ms: Record time of the cut, Unix ms; no record after the cut is earlier,
            except late records.
        next_ms: Time of the earliest record after the cut; `clock_ms` if none exists.
        ends: Offset of each partition's first record whose time is `clock_ms` or later.
        times: Record times, including the scans that the cut needed.
    """

    clock_ms: int
    next_ms: int
    ends: dict[int, int]
    times: RecordTimes

    @property
    def rows(self) -> int:
        """Number of offsets from the start to the ends."""
        return count_rows(self.times.unread.start.next_offsets(), self.ends)


def aligned_end(times: RecordTimes, latest_ms: int, row_limit: int) -> Cut:
    """Return a cut up to `latest_ms` whose records fit the limit.

    The cut is the latest such cut, or fills at least three quarters of the limit. If
    the records of one time alone exceed the limit, the batch ends between these
    records, and T is their time. If late records alone exceed the limit, T does not
    move.
    """
    while True:
        end = _aligned_end(times, latest_ms, row_limit)
        # The search trusts Kafka's index. If the index returns a record from the
        # future, the cut may omit later offsets with records before T, so the cut is
        # checked.
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
    # The records with the record time T alone exceed the limit. T stays, because no
    # record of the batch is later.
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
    """Search in doubling strides; return the last cut that fits, and the next cut.

    The time of the fitting cut is moved up to the earliest record after the cut. The
    next cut has too many records, or lies after the latest time.
    """
    times, stride_ms = low.times, _FIRST_STRIDE_MS
    while True:
        last_ms = times.latest_clock_ms(latest_ms)
        low = low._replace(clock_ms=max(low.clock_ms, min(low.next_ms, last_ms)))
        high = cut_at(times, min(low.clock_ms + stride_ms, last_ms + 1))
        times = high.times
        last_ms = times.latest_clock_ms(latest_ms)
        if high.clock_ms > last_ms + 1:
            # A scan for the cut has made the latest time earlier than the cut. The
            # search therefore repeats the cut at an earlier time.
            continue
        if high.rows > row_limit or high.clock_ms > last_ms:
            return low, high
        low = high
        stride_ms *= 2


def bisect(
    low: Cut, high: Cut, latest_ms: int, row_limit: int
) -> tuple[Cut, Cut, RecordTimes]:
    """Narrow the range between a cut that fits and a cut that does not fit.

    The search ends when the cuts are 1 ms apart, or when the lower cut fills three
    quarters of the limit. Every further step costs a request to the broker.
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
    """Move offsets from `low` to `high`, by `rows` in total, partition by partition."""
    ends = dict(low)
    for partition in sorted(high):
        taken = min(rows, high[partition] - low[partition])
        ends[partition] += taken
        rows -= taken
    return ends
