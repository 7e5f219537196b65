"""The Kafka records that the taps of a simulation write (docs/records.md)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from connectors.kafka.producer import TopicRecord
from connectors.simulator.heartbeat import heartbeat_records
from sds_core.simulation.log import Heartbeat, Sighting
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.simulator import simulate
from sds_core.simulation.truth import Truth
from sds_core.simulation.waku import PUBSUB_TOPIC, content_topic


def simulated_records(
    scenario: Scenario, seed: int, start_ms: int, partitions: int, truth: Truth
) -> Iterator[TopicRecord]:
    """Simulate, and yield the records in the order in which the taps write them.

    Args:
        scenario: Scenario to simulate.
        seed: Seed of everything that the scenario leaves to chance.
        start_ms: Start of the simulation, Unix ms.
        partitions: Number of partitions of the topic; each channel stays in one.
        truth: Collects everything that happens. A record is added only when the next
            one is requested, so a record that the caller never requested is not in the
            truth.
    """
    for entry in simulate(scenario, seed, start_ms):
        if isinstance(entry, Sighting):
            yield _frame_record(entry, partitions)
        elif isinstance(entry, Heartbeat):
            yield from heartbeat_records(entry, partitions)
        truth.add(entry)


def _frame_record(sighting: Sighting, partitions: int) -> TopicRecord:
    sent = sighting.transmission
    key = sent.channel_id.encode()
    headers = {
        "observer": sighting.tap,
        "seq": str(sighting.seq),
        "source": "simulator",
        "waku-hash": sent.waku_hash,
        "waku-timestamp": str(sent.waku_timestamp_ns),
        "pubsub-topic": PUBSUB_TOPIC,
        "content-topic": content_topic(sent.channel_id),
        "ephemeral": "true" if sent.frame.lamport is None else "false",
    }
    return TopicRecord(
        zlib.crc32(key) % partitions,
        sighting.at_ms,
        key,
        sent.value,
        tuple((name, value.encode()) for name, value in headers.items()),
    )
