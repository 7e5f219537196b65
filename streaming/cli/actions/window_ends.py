"""Finds the offsets at which commands end the search for a window's records."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from connectors.kafka.consumer import OffsetRange, read_ranges
from connectors.kafka.offsets import TimedOffset, TopicOffsets
from connectors.kafka.settings import KafkaSettings
from streaming.admission import LATE_MS, ends_of_window
from streaming.cli.window_options import ALL_TIMES
from streaming.settings import Window


def find_ends(
    kafka: KafkaSettings,
    offsets: TopicOffsets,
    partitions: Collection[int],
    window: Window,
) -> dict[int, int]:
    """Return, for each partition, where the search for a window's records ends.

    As in a replay, the search continues until record times of `LATE_MS` after the end
    of the window, because some records of the window are written late. The records up
    to these offsets may thus have times outside the window.
    """
    ends = offsets.latest(partitions)
    if window.last_ms >= ALL_TIMES.last_ms - LATE_MS:
        return ends
    return ends_of_window(offsets, ends, window, partial(_times, kafka))


def _times(
    kafka: KafkaSettings, partition: int, start: int, end: int
) -> list[TimedOffset]:
    return [
        TimedOffset(record.offset, record.timestamp_ms)
        for record in read_ranges(kafka, [OffsetRange(partition, start, end)])
    ]
