"""Heartbeats of simulated taps as Kafka records (docs/records.md)."""

from __future__ import annotations

from collections.abc import Iterator

from connectors.kafka.producer import TopicRecord
from sds_core.simulation.log import Heartbeat


def heartbeat_records(heartbeat: Heartbeat, partitions: int) -> Iterator[TopicRecord]:
    """Yield a heartbeat's record for each partition."""
    headers = {
        "observer": heartbeat.tap,
        "seq": str(heartbeat.seq),
        "source": "simulator",
        "kind": "heartbeat",
    }
    encoded = tuple((name, value.encode()) for name, value in headers.items())
    for partition in range(partitions):
        yield TopicRecord(partition, heartbeat.at_ms, None, b"", encoded)
