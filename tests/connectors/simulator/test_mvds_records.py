"""Records of MVDS that the taps of a simulation write."""

from __future__ import annotations

from itertools import islice

import pytest

from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import load_scenario
from sds_core.mvds.payload import decode
from sds_core.observer.record import read_headers
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.mvds.truth import MvdsTruth

START_MS = 1_760_000_000_000


@pytest.fixture
def scenario() -> MvdsScenario:
    """Four nodes that offer messages."""
    found = load_scenario("mvds-interactive")
    assert isinstance(found, MvdsScenario)
    return found


def test_records_of_mvds_follow_the_record_format(scenario: MvdsScenario) -> None:
    """Key, headers and value as in docs/records.md; a pair has one partition."""
    records = simulated_records(scenario, 1, START_MS, 3, MvdsTruth("some", 1))
    some = list(islice(records, 400))
    heartbeats = [one for one in some if one.key is None]
    assert {one.partition for one in heartbeats} == {0, 1, 2}
    assert all(read_headers(one.headers).is_heartbeat for one in heartbeats)
    partitions: dict[bytes, set[int]] = {}
    numbers = []
    for one in some:
        if one.key is None:
            continue
        headers = {name: value.decode() for name, value in one.headers}
        numbers.append(int(headers["seq"]))
        ends = sorted((headers["peer"], headers["to"]))
        assert one.key == "|".join(ends).encode()
        assert (headers["protocol"], headers["observer"]) == ("mvds", "tap")
        decode(one.value)
        partitions.setdefault(one.key, set()).add(one.partition)
    assert numbers == sorted(set(numbers))
    assert all(len(places) == 1 for places in partitions.values())


@pytest.mark.parametrize("written", [0, 1, 40, 200])
def test_payload_that_was_not_written_is_not_in_the_truth(
    scenario: MvdsScenario, written: int
) -> None:
    """A writer requests one more record before it sees that it should stop."""
    truth = MvdsTruth("some", 1)
    records = simulated_records(scenario, 1, START_MS, 1, truth)
    taken = list(islice(records, written))
    next(records)
    totals = truth.document()["views"]["mvds"]["totals"]
    payloads = [one for one in taken if one.key is not None]
    assert totals["payloads"]["all"] + totals["replicas"] == len(payloads)
