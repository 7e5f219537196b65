"""Whether a topic holds records of a window, without a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TopicOffsets
from streaming.admission import LATE_MS
from streaming.settings import SourceSettings, Window


def holds_records(source: SourceSettings, window: Window) -> bool:
    """Return whether a job that reads the window would read a record.

    Kafka's index answers, except where the records of a partition begin after the
    window: its later records may have earlier times, and are read.

    Raises:
        connectors.kafka.settings.KafkaUnreachable: No broker answered.
        connectors.kafka.settings.TopicMissing: The topic does not exist.
        connectors.kafka.settings.RecordsLost: Kafka deleted records meanwhile.
    """
    with closing(TopicOffsets(source.kafka)) as offsets:
        ends = offsets.latest(offsets.partitions())
        begins = offsets.first_at_or_after(list(ends), window.first_ms)
        if any(at.timestamp_ms in window for at in begins.values()):
            return True
        behind = offsets.first_at_or_after(list(ends), window.last_ms + LATE_MS + 1)
    ranges = []
    for partition, at in begins.items():
        end = ends[partition]
        if partition in behind:
            first = behind[partition].offset
            # The time of a transaction's end says nothing about later records.
            if any(
                True for _ in _times(source, OffsetRange(partition, first, first + 1))
            ):
                end = min(end, first)
        ranges.append(OffsetRange(partition, at.offset, end))
    return any(time_ms in window for time_ms in _times(source, *ranges))


def _times(source: SourceSettings, *ranges: OffsetRange) -> Iterator[int]:
    """Yield the times of the records in some ranges, Unix ms."""
    for records in fetch(source.client, source.kafka, ranges):
        for record in records:
            yield record.timestamp_ms
