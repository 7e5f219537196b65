"""Reads partitions backwards, one slice of time after another.

Kafka's time index gives the offsets at which a slice begins and ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from connectors.kafka.consumer import OffsetRange, read_ranges
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.record import RawRecord


def slices_backward(
    settings: KafkaSettings,
    offsets: TopicOffsets,
    ends: Mapping[int, int],
    first_ms: int,
    last_ms: int,
    length_ms: int,
) -> Iterator[Iterator[RawRecord]]:
    """Yield the records of some partitions in slices of time, newest slice first.

    The newest slice is `length_ms` long and ends at `last_ms`. Each further slice is
    twice as long as the slice that was yielded before it. The oldest slice begins at
    `first_ms`, and may be shorter. `first_ms` and `last_ms` are record times, Unix ms.
    `ends` has the partitions, and the offset after the last one to read; later records
    belong to the newest slice. Reading a slice raises the errors of `consumer.fetch`.
    """
    partitions = list(ends)
    until_ms = last_ms
    while until_ms >= first_ms:
        from_ms = max(first_ms, until_ms - length_ms + 1)
        starts = offsets_at(offsets, partitions, from_ms)
        ranges = [OffsetRange(one, starts[one], ends[one]) for one in partitions]
        yield read_ranges(settings, ranges)
        ends, until_ms, length_ms = starts, from_ms - 1, 2 * length_ms


def offsets_at(
    offsets: TopicOffsets, partitions: Sequence[int], time_ms: int
) -> Mapping[int, int]:
    """Return each partition's first offset whose record time is `time_ms` or later.

    If a partition has no such record, its end offset is returned. `time_ms` is in Unix
    ms.
    """
    begins = offsets.first_at_or_after(partitions, max(0, time_ms))
    ends = offsets.latest(partitions)
    return {p: begins[p].offset if p in begins else ends[p] for p in partitions}
