"""The Kafka records that the taps of a simulation write (docs/records.md)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from connectors.kafka.producer import TopicRecord
from sds_core.simulation.log import PUBSUB_TOPIC, Heartbeat, Sighting, content_topic
from sds_core.simulation.mvds.log import PayloadSighting
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.mvds.simulator import simulate_mvds
from sds_core.simulation.mvds.truth import MvdsTruth
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.simulator import simulate
from sds_core.simulation.truth import Truth

AnyScenario = Scenario | MvdsScenario


class AnyTruth(Protocol):
    """Collects what really happens in a simulation, to compare it with a report."""

    def add(self, entry: Any, /) -> None:
        """Add the next event of the simulation."""

    def document(self) -> Mapping[str, Any]:
        """Return what a correct monitor reports, and further facts, as JSON values."""


class Simulation(NamedTuple):
    """Records of simulated traffic, and what really happens in the simulation."""

    records: Iterator[TopicRecord]
    truth: AnyTruth


def simulation_of(
    scenario: AnyScenario, seed: int, start_ms: int, partitions: int
) -> Simulation:
    """Prepare a simulation, which runs while its records are read.

    For the arguments, see `simulated_records`.
    """
    kind = MvdsTruth if isinstance(scenario, MvdsScenario) else Truth
    truth: AnyTruth = kind(scenario.name, seed)
    records = simulated_records(scenario, seed, start_ms, partitions, truth)
    return Simulation(records, truth)


def simulated_records(
    scenario: AnyScenario, seed: int, start_ms: int, partitions: int, truth: AnyTruth
) -> Iterator[TopicRecord]:
    """Simulate, and yield the records in the order in which the taps write them.

    The simulation starts at `start_ms`, Unix ms. All records of one channel are in one
    partition, as are all records of one pair of MVDS nodes. When the caller receives a
    record, `truth` has collected all events before the event of this record.
    """
    if isinstance(scenario, MvdsScenario):
        entries: Iterator[Any] = simulate_mvds(scenario, seed, start_ms)
    else:
        entries = simulate(scenario, seed, start_ms)
    for entry in entries:
        if isinstance(entry, Sighting):
            yield _frame_record(entry, partitions)
        elif isinstance(entry, PayloadSighting):
            yield _payload_record(entry, partitions)
        elif isinstance(entry, Heartbeat):
            yield from _heartbeat_records(entry, partitions)
        truth.add(entry)


def _frame_record(sighting: Sighting, partitions: int) -> TopicRecord:
    sent = sighting.transmission
    headers = {
        "waku-hash": sent.waku_hash,
        "waku-timestamp": str(sent.waku_timestamp_ns),
        "pubsub-topic": PUBSUB_TOPIC,
        "content-topic": content_topic(sent.channel_id),
        "ephemeral": "true" if sent.frame.lamport is None else "false",
    }
    return _record(sighting, sent.channel_id, sent.value, headers, partitions)


def _payload_record(sighting: PayloadSighting, partitions: int) -> TopicRecord:
    sending = sighting.sending
    headers = {"protocol": "mvds", "peer": sending.sender, "to": sending.receiver}
    key = "|".join(sorted((sending.sender, sending.receiver)))
    return _record(sighting, key, sending.value, headers, partitions)


def _heartbeat_records(heartbeat: Heartbeat, partitions: int) -> Iterator[TopicRecord]:
    headers = _headers(heartbeat, {"kind": "heartbeat"})
    for partition in range(partitions):
        yield TopicRecord(partition, heartbeat.at_ms, None, b"", headers)


def _record(
    sighting: Sighting | PayloadSighting,
    key: str,
    value: bytes,
    headers: Mapping[str, str],
    partitions: int,
) -> TopicRecord:
    partition = zlib.crc32(key.encode()) % partitions
    return TopicRecord(
        partition, sighting.at_ms, key.encode(), value, _headers(sighting, headers)
    )


def _headers(
    entry: Sighting | PayloadSighting | Heartbeat, more: Mapping[str, str]
) -> tuple[tuple[str, bytes], ...]:
    headers = {
        "observer": entry.tap,
        "seq": str(entry.seq),
        "source": "simulator",
        **more,
    }
    return tuple((name, text.encode()) for name, text in headers.items())
