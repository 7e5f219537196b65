"""The Kafka records that the taps of a simulation of MVDS write (docs/records.md)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from connectors.kafka.producer import TopicRecord
from connectors.simulator.heartbeat import heartbeat_records
from sds_core.simulation.log import Heartbeat
from sds_core.simulation.mvds.log import PayloadSighting
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.mvds.simulator import simulate_mvds
from sds_core.simulation.mvds.truth import MvdsTruth


def mvds_records(
    scenario: MvdsScenario, seed: int, start_ms: int, partitions: int, truth: MvdsTruth
) -> Iterator[TopicRecord]:
    """Simulate, and yield the records; see `simulated_records`.

    Each pair of nodes stays in one partition.
    """
    for entry in simulate_mvds(scenario, seed, start_ms):
        if isinstance(entry, PayloadSighting):
            yield _payload_record(entry, partitions)
        elif isinstance(entry, Heartbeat):
            yield from heartbeat_records(entry, partitions)
        truth.add(entry)


def _payload_record(sighting: PayloadSighting, partitions: int) -> TopicRecord:
    sending = sighting.sending
    key = "|".join(sorted((sending.sender, sending.receiver))).encode()
    headers = {
        "observer": sighting.tap,
        "seq": str(sighting.seq),
        "source": "simulator",
        "protocol": "mvds",
        "peer": sending.sender,
        "to": sending.receiver,
    }
    return TopicRecord(
        zlib.crc32(key) % partitions,
        sighting.at_ms,
        key,
        sending.value,
        tuple((name, value.encode()) for name, value in headers.items()),
    )
