"""Nodes of MVDS on a simulated network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from sds_core.mvds.payload import decode
from sds_core.simulation.log import Heartbeat
from sds_core.simulation.mvds.log import (
    AckArrived,
    Made,
    MvdsEntry,
    PayloadSighting,
    Reached,
    Sending,
)
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.mvds.simulator import simulate_mvds

START_MS = 1_760_000_000_000


def log_of(seed: int = 1, **changes: Any) -> list[MvdsEntry]:
    """Everything that happens in a small scenario."""
    mapping = {
        "protocol": "mvds",
        "name": "some",
        "description": "Some nodes.",
        "duration_s": 60,
        "settle_s": 60,
        "nodes": 3,
        "interval_s": 10.0,
    }
    scenario = MvdsScenario.from_mapping(mapping | changes)
    return list(simulate_mvds(scenario, seed, START_MS))


def kinds(log: Sequence[MvdsEntry]) -> Counter[type]:
    """The number of entries of each kind."""
    return Counter(type(entry) for entry in log)


def test_same_seed_gives_the_same_log_and_another_seed_another() -> None:
    """To the byte."""
    assert log_of(1) == log_of(1)
    assert log_of(1) != log_of(2)


def test_messages_with_equal_bodies_have_different_ids() -> None:
    """Also those that different senders make within a second."""
    changes = {"payload_bytes": 1, "interval_s": 0.2, "senders": 3, "settle_s": 0}
    made = [one.message_id for one in log_of(**changes) if isinstance(one, Made)]
    assert len(made) > 500
    assert len(set(made)) == len(made)


def test_longest_body_fits_into_a_message() -> None:
    """Nodes refuse a longer one."""
    log = log_of(payload_bytes=65_480)
    assert kinds(log)[Made] > 0
    assert kinds(log)[Reached] == 2 * kinds(log)[Made]


def test_entries_are_in_order_of_their_times() -> None:
    """A tap's own times may be later than the moment at which it records."""
    times = [one.at_ms for one in log_of() if not isinstance(one, PayloadSighting)]
    assert times == sorted(times)
    assert times[0] >= START_MS


@pytest.mark.parametrize("mode", ["interactive", "batch"])
def test_without_loss_every_message_reaches_every_node(mode: str) -> None:
    """And each of these nodes' acknowledgement reaches the maker."""
    log = log_of(mode=mode)
    made = {one.message_id: one.node for one in log if isinstance(one, Made)}
    reached = {
        (one.message_id, one.node)
        for one in log
        if isinstance(one, Reached) and one.node != made[one.message_id]
    }
    acknowledged = {
        (one.message_id, one.node) for one in log if isinstance(one, AckArrived)
    }
    assert made
    assert len(reached) == 2 * len(made)
    assert reached <= acknowledged


def test_lost_payloads_are_repeated_until_they_arrive() -> None:
    """More payloads are sent, and the same number of messages arrives."""
    without, lossy = log_of(), log_of(settle_s=600, network={"loss": 0.4})
    assert kinds(lossy)[Made] == kinds(without)[Made]
    assert kinds(lossy)[Reached] == kinds(without)[Reached]
    assert kinds(lossy)[Sending] > kinds(without)[Sending]


def test_node_that_is_cut_off_receives_nothing_meanwhile() -> None:
    """It receives everything later."""
    cut = {"from_s": 0, "until_s": 90, "participants": 1}
    log = log_of(settle_s=300, network={"partitions": [cut]})
    whole = log_of(settle_s=300)
    assert kinds(log)[Reached] == kinds(whole)[Reached]
    makers = {one.node for one in log if isinstance(one, Made)}
    early = Counter(
        one.node
        for one in log
        if isinstance(one, Reached)
        and one.at_ms < START_MS + 90_000
        and one.node not in makers
    )
    assert len(early) < 2


def test_tap_numbers_what_it_records_and_beats() -> None:
    """Numbers have no hole, and a value is what its payload encodes to."""
    log = log_of()
    sightings = [one for one in log if isinstance(one, PayloadSighting)]
    heartbeats = [one for one in log if isinstance(one, Heartbeat)]
    assert heartbeats
    assert [one.seq for one in sightings] == sorted({one.seq for one in sightings})
    assert all(decode(one.sending.value) == one.sending.payload for one in sightings)
    assert len(sightings) == kinds(log)[Sending]


def test_nodes_have_epochs_of_their_own() -> None:
    """Two nodes never send in the same millisecond."""
    senders: dict[int, set[str]] = {}
    for one in log_of(nodes=10):
        if isinstance(one, Sending):
            senders.setdefault(one.at_ms, set()).add(one.sender)
    assert all(len(names) == 1 for names in senders.values())
