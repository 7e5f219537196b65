"""A trace says of each message what the report says: there is one judge."""

from __future__ import annotations

from collections import defaultdict

import pytest

from connectors.recording import load_recording
from connectors.simulator.scenario_files import load_scenario
from sds_core.trace.document import trace_object
from sds_core.wire import decode
from tests.support.trace.agreement import disagreements, mvds_disagreements
from tests.support.trace.causes import named_cause
from tests.support.trace.traced import Simulated, read, simulated


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


@pytest.fixture(scope="module")
def recorded() -> Simulated:
    """The demo's recording, which is of real `@waku/sds` participants."""
    return read(load_recording())


def test_traces_of_recorded_traffic_say_what_the_report_says(
    recorded: Simulated,
) -> None:
    """As of simulated participants."""
    assert sum(map(len, recorded.truth["messages"].values())) > 100
    assert [*disagreements(recorded)] == []


def test_trace_names_the_cause_of_what_real_peers_lost_and_repaired(
    recorded: Simulated,
) -> None:
    """The frames themselves say which: sent, then requested, then sent again."""
    frames = [decode(one.value) for one in recorded.records if one.key is not None]
    repaired: dict[str, set[str]] = {}
    sent: set[str] = set()
    asking: defaultdict[str, set[str]] = defaultdict(set)
    for one in (one for one in frames if one.channel_id == "broken-bridge"):
        if one.message_id in sent and asking[one.message_id]:
            repaired[one.message_id] = asking[one.message_id]
        sent.add(one.message_id)
        for entry in one.repair_request:
            if entry.message_id in sent:
                asking[entry.message_id].add(one.sender_id)
    assert len(repaired) == 5
    traces = recorded.trace("broken-bridge", repaired)
    for trace, peers in zip(traces, repaired.values(), strict=True):
        document = trace_object(trace)
        assert named_cause(document).what == "repaired late"
        asked = {one["name"] for one in document["participants"] if one["requests"]}
        assert asked == peers
