"""The simulation that a scenario's protocol needs, for commands that take any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from connectors.kafka.producer import TopicRecord
from connectors.simulator.records import mvds_records, simulated_records
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.mvds.truth import MvdsTruth
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth

AnyScenario = Scenario | MvdsScenario
"""A scenario of some protocol."""


class AnyTruth(Protocol):
    """What really happens in a simulation."""

    def document(self) -> Mapping[str, Any]:
        """Return what a correct monitor reports, in values of JSON."""


class Simulation(NamedTuple):
    """Simulated traffic and its truth.

    Attributes:
        records: The records, in the order in which the taps write them.
        truth: What really happens. A record is added only when the next one is
            requested, so a record that was never requested is not in the truth.
    """

    records: Iterator[TopicRecord]
    truth: AnyTruth


def simulation_of(
    scenario: AnyScenario, seed: int, start_ms: int, partitions: int
) -> Simulation:
    """Begin the simulation of a scenario.

    Args:
        scenario: Scenario to simulate.
        seed: Seed of everything that the scenario leaves to chance.
        start_ms: Start of the simulation, Unix ms.
        partitions: Number of partitions of the topic.
    """
    place = (seed, start_ms, partitions)
    if isinstance(scenario, MvdsScenario):
        payloads = MvdsTruth(scenario.name, seed)
        return Simulation(mvds_records(scenario, *place, payloads), payloads)
    truth = Truth(scenario.name, seed)
    return Simulation(simulated_records(scenario, *place, truth), truth)
