"""Reads all partitions of a topic as one sequence, in order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from connectors.kafka.consumer import OffsetRange, read_ranges
from connectors.kafka.offsets import TimedOffset, TopicOffsets
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.record import RawRecord

SLICE_RECORDS = 5_000
"""Maximum number of records that are sorted in memory at once. If their filters have
the default size, these records need 100 MB."""

_FIRST_STRIDE_MS = 1_000
_LATEST_MS = 2**63 - 1


def read_in_order_of_time(
    settings: KafkaSettings,
    offsets: TopicOffsets,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    slice_records: int = SLICE_RECORDS,
) -> Iterator[RawRecord]:
    """Read the records of some partitions, merged by time.

    Within a partition, records are in the order of their offsets. Records of different
    partitions are in the order of their peak times. A record's peak time is the maximum
    of its own time and of the times of its predecessors in the partition. A late record
    thus stays behind its predecessors. If a program writes the records in this order,
    all partitions advance in time together.

    For each partition, `starts` has the first offset to read, and `ends` the offset
    after the last one to read. The function raises the errors of `consumer.fetch` and
    of `offsets`.
    """
    if len(starts) == 1:
        ranges = [OffsetRange(p, start, ends[p]) for p, start in starts.items()]
        yield from read_ranges(settings, ranges)
        return
    here = dict(starts)
    peaks_ms: dict[int, int] = {}
    low_ms = 0
    stride_ms = _FIRST_STRIDE_MS
    while unread := [p for p, offset in here.items() if offset < ends[p]]:
        found = offsets.first_at_or_after(unread, low_ms)
        times = [at.timestamp_ms for p, at in found.items() if at.offset < ends[p]]
        next_ms = min(times, default=_LATEST_MS)
        while True:
            low_ms = next_ms + stride_ms
            cut = _cut(offsets, here, ends, low_ms)
            size = sum(cut[p] - here[p] for p in here)
            if size <= slice_records or stride_ms == 1:
                break
            stride_ms //= 2
        fetched = read_ranges(settings, [OffsetRange(p, here[p], cut[p]) for p in here])
        if size <= slice_records:
            yield from _merged(fetched, peaks_ms)
        else:
            # All records of this slice have the same millisecond, so any order of
            # partitions is right.
            for record in fetched:
                _peak_ms(record, peaks_ms)
                yield record
        here = cut
        if size < slice_records // 2:
            stride_ms *= 2


def _cut(
    offsets: TopicOffsets,
    here: Mapping[int, int],
    ends: Mapping[int, int],
    until_ms: int,
) -> dict[int, int]:
    """For each partition, return the offset of the first record at or after `until_ms`.

    The offset is at least the partition's offset in `here`, and at most the offset in
    `ends`. If a partition has no such record, its offset is the one in `ends`.
    """
    found: Mapping[int, TimedOffset] = {}
    if until_ms <= _LATEST_MS:
        unread = [p for p, offset in here.items() if offset < ends[p]]
        found = offsets.first_at_or_after(unread, until_ms)
    return {
        p: min(ends[p], max(here[p], found[p].offset)) if p in found else ends[p]
        for p in here
    }


def _merged(
    records: Iterable[RawRecord], peaks_ms: dict[int, int]
) -> Iterator[RawRecord]:
    in_offset_order = sorted(records, key=lambda one: (one.partition, one.offset))
    timed = [(_peak_ms(record, peaks_ms), record) for record in in_offset_order]
    timed.sort(key=lambda pair: pair[0])
    return (record for _, record in timed)


def _peak_ms(record: RawRecord, peaks_ms: dict[int, int]) -> int:
    known_ms = peaks_ms.get(record.partition, record.timestamp_ms)
    peaks_ms[record.partition] = max(known_ms, record.timestamp_ms)
    return peaks_ms[record.partition]
