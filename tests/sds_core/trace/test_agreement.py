"""A trace says of each message what the report says: there is one judge."""

from __future__ import annotations

import pytest

from connectors.recording.recording import load_recording
from connectors.simulator.scenario_files import load_scenario
from tests.support.trace.agreement import disagreements, mvds_disagreements
from tests.support.trace.traced import read, simulated


@pytest.mark.parametrize("name", ["quiet", "unrepaired", "tap-blind"])
def test_traces_of_all_messages_say_what_the_report_says(name: str) -> None:
    """Incidents and latencies are equal, and conclusions add up to the figures."""
    run = simulated(load_scenario(name))
    assert sum(map(len, run.truth["messages"].values())) > 10
    assert [*disagreements(run)] == []


def test_traces_of_mvds_add_up_to_the_report_of_each_group() -> None:
    """Pairs in time, unacknowledged, unwitnessed and resolved; offers and requests."""
    run = simulated(load_scenario("mvds-batch"))
    assert run.truth["messages"]
    assert [*mvds_disagreements(run)] == []


def test_traces_of_recorded_traffic_say_what_the_report_says() -> None:
    """The demo's recording is of real `@waku/sds` and nim-sds participants."""
    run = read(load_recording())
    assert sum(map(len, run.truth["messages"].values())) > 100
    assert [*disagreements(run)] == []
