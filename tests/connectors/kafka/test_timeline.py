"""Partitions merged by time, on real Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.timeline import read_in_order_of_time
from tests.support.kafka import KafkaTopic, TopicMaker

pytestmark = pytest.mark.kafka

FAR_AHEAD_MS = 4_000_000_000_000


def read(
    topic: KafkaTopic, starts: Mapping[int, int] | None = None, slice_records: int = 4
) -> list[tuple[int, int]]:
    """Partition and time of each record, in the order in which they come."""
    offsets = TopicOffsets(topic.settings)
    try:
        partitions = offsets.partitions()
        found = read_in_order_of_time(
            topic.settings,
            offsets,
            starts or offsets.earliest(partitions),
            offsets.latest(partitions),
            slice_records,
        )
        return [(record.partition, record.timestamp_ms) for record in found]
    finally:
        offsets.close()


@pytest.mark.parametrize("slice_records", [1, 4, 1_000])
@pytest.mark.parametrize(
    "times",
    [
        ([1, 5, 9], [2, 4, 6], []),
        # A late record keeps its place behind those that came before it.
        ([10, 3, 20, 21], [5, 15, 4_000]),
        # More of one time than are held at once; silence of days; before 1970.
        ([7] * 9, [7] * 5, [6, 8]),
        ([-5, 1, 2], [1_000_000_000, 1_000_000_001], [3, 999_999_999]),
        # A clock that is wrong by decades holds up only its own partition.
        ([1, FAR_AHEAD_MS, 2, 3], [1, 2, 3, 4, 5]),
    ],
)
def test_every_record_comes_once_in_order_of_its_partitions_clock(
    kafka_topic: TopicMaker, times: Sequence[Sequence[int]], slice_records: int
) -> None:
    """Whatever the number of records in memory."""
    ahead = str(2 * FAR_AHEAD_MS)
    topic = kafka_topic(len(times), {"message.timestamp.after.max.ms": ahead})
    for partition, column in enumerate(times):
        topic.write_times(column, partition)
    found = read(topic, slice_records=slice_records)
    clocks_ms = []
    for partition, column in enumerate(times):
        assert [ms for p, ms in found if p == partition] == list(column)
    peaks: dict[int, int] = {}
    for partition, time_ms in found:
        peaks[partition] = max(time_ms, peaks.get(partition, time_ms))
        clocks_ms.append(peaks[partition])
    assert clocks_ms == sorted(clocks_ms)


def test_reading_begins_at_the_given_offsets(kafka_topic: TopicMaker) -> None:
    """Records before them are not read, whatever their time."""
    topic = kafka_topic(2)
    topic.write_times([9, 1, 2], 0)
    topic.write_times([3], 1)
    assert read(topic, {0: 1, 1: 0}) == [(0, 1), (0, 2), (1, 3)]


def test_transactions_leave_no_gap(kafka_topic: TopicMaker) -> None:
    """Their end markers are skipped, and aborted records are not read."""
    topic = kafka_topic()
    topic.write_transaction([1, 2])
    topic.write_transaction([3], commit=False)
    topic.write_times([4])
    assert read(topic) == [(0, 1), (0, 2), (0, 4)]
