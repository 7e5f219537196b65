"""The simulations of MVDS by which the monitor is judged."""

from __future__ import annotations

from typing import NamedTuple

from connectors.simulator import scenario_names
from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import load_scenario
from sds_core.simulation.comparison import Comparison, compare
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.mvds.truth import MvdsTruth
from tests.support.accuracy.play import PARTITIONS, START_MS
from tests.support.monitor import Monitor, batches

MVDS_NAMES = [
    name for name in scenario_names() if isinstance(load_scenario(name), MvdsScenario)
]


class MvdsResult(NamedTuple):
    """Summary of one simulation.

    Attributes:
        messages: Messages that nodes made.
        reached: Pairs of a message and another node that really received it.
        deliveries: Pairs that the monitor reports as delivered.
        addressed: Pairs of a message and a receiver that the monitor followed.
        in_time: Of these, acknowledged by the deadline.
        unacknowledged: Of these, reported as unacknowledged.
        differing: Figures of the report that are not the truth's.
    """

    messages: int
    reached: int
    deliveries: int
    addressed: int
    in_time: int
    unacknowledged: int
    differing: list[Comparison]


def mvds_result_of(name: str, seed: int, size: int | None = 1_000) -> MvdsResult:
    """Simulate one of `MVDS_NAMES` and compare the monitor's report with the truth.

    Args:
        name: Name of the scenario.
        seed: Seed of the simulation.
        size: Records in a batch; None for all in one.
    """
    scenario = load_scenario(name)
    assert isinstance(scenario, MvdsScenario)
    truth = MvdsTruth(name, seed)
    monitor = Monitor()
    records = list(simulated_records(scenario, seed, START_MS, PARTITIONS, truth))
    for batch in batches(records, size):
        monitor.read(*batch)
    document = truth.document()
    report = monitor.report()
    found = report["views"]["mvds"]["totals"]
    stories = document["messages"].values()
    return MvdsResult(
        messages=len(stories),
        reached=sum(len(one["reached"].keys() - {one["node"]}) for one in stories),
        deliveries=found["deliveries"],
        addressed=found["addressed"],
        in_time=found["acknowledged_in_time"],
        unacknowledged=found["unacknowledged"],
        differing=[one for one in compare(document, report) if not one.same],
    )
