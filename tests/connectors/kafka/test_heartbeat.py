"""Heartbeats for a topic whose taps write none, on real Kafka."""

from __future__ import annotations

import time

import pytest

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.heartbeat import OBSERVER, heartbeats
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import Client
from sds_core.observer.record import NO_SEQ, read_headers
from tests.support.kafka import TopicMaker

pytestmark = pytest.mark.kafka


def test_every_partition_gets_heartbeats(kafka_topic: TopicMaker) -> None:
    """They have no number and the current time, and end with the block."""
    topic = kafka_topic(partitions=2)
    offsets = TopicOffsets(topic.settings)
    begun_ms = time.time_ns() // 1_000_000
    with heartbeats(topic.settings, interval_s=0.1):
        topic.wait_for(lambda: min(offsets.latest([0, 1]).values()) >= 2)
    ends = offsets.latest([0, 1])
    ranges = [OffsetRange(partition, 0, end) for partition, end in ends.items()]
    for records in fetch(Client.CONFLUENT, topic.settings, ranges):
        for record in records:
            headers = read_headers(record.headers)
            assert headers.is_heartbeat
            assert (headers.observer, headers.seq) == (OBSERVER, NO_SEQ)
            assert record.value == b""
            assert record.timestamp_ms >= begun_ms
    time.sleep(0.3)
    assert offsets.latest([0, 1]) == ends
    offsets.close()
