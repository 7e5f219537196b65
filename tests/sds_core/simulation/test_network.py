"""Partitions cut exactly the links that they name, for their time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sds_core.simulation.scenario import Scenario
from sds_core.simulation.streams import Streams
from sds_core.simulation.world import Network

EVERYBODY = np.arange(6)


def network(mapping: dict[str, Any], *directions: str) -> Network:
    """Make a lossless network of six, two of them cut off from 10 to 20 s."""
    mapping["participants"] = 6
    mapping["network"]["partitions"] = [
        {"from_s": 10, "until_s": 20, "participants": 2, "direction": direction}
        for direction in directions
    ]
    scenario = Scenario.from_mapping(mapping)
    return Network(scenario.network, scenario.participants, Streams(3))


def reached(network: Network, elapsed_ms: int) -> list[list[bool]]:
    """Return for each sender who gets what it sends."""
    return [
        network.carry(sender, EVERYBODY, elapsed_ms)[0].tolist() for sender in range(6)
    ]


@pytest.mark.parametrize("elapsed_ms", [0, 9_999, 20_000])
def test_partition_cuts_nothing_before_and_after(
    mapping: dict[str, Any], elapsed_ms: int
) -> None:
    """It begins at its first and ends before its last ms."""
    cut = network(mapping, "both")
    assert np.all(reached(cut, elapsed_ms))
    assert all(cut.reaches_taps(sender, elapsed_ms) for sender in range(6))


@pytest.mark.parametrize("elapsed_ms", [10_000, 19_999])
def test_partition_makes_two_connected_sides(
    mapping: dict[str, Any], elapsed_ms: int
) -> None:
    """Two participants inside, four outside with the taps."""
    cut = network(mapping, "both")
    rows = reached(cut, elapsed_ms)
    inside = [row for row in rows if sum(row) == 2]
    outside = [row for row in rows if sum(row) == 4]
    assert (len(inside), len(outside)) == (2, 4)
    assert all(rows[i][j] == rows[j][i] for i in range(6) for j in range(6))
    taps = [cut.reaches_taps(sender, elapsed_ms) for sender in range(6)]
    assert taps == [sum(row) == 4 for row in rows]


def test_outgoing_partition_silences_those_inside(mapping: dict[str, Any]) -> None:
    """They receive all frames; only they themselves receive theirs."""
    cut = network(mapping, "outgoing")
    rows = reached(cut, 15_000)
    assert sorted(sum(row) for row in rows) == [2, 2, 6, 6, 6, 6]
    taps = [cut.reaches_taps(sender, 15_000) for sender in range(6)]
    assert taps == [sum(row) == 6 for row in rows]


def test_incoming_partition_deafens_those_inside(mapping: dict[str, Any]) -> None:
    """All others and the taps receive their frames, they only their own."""
    cut = network(mapping, "incoming")
    rows = reached(cut, 15_000)
    assert sorted(sum(row) for row in rows) == [4, 4, 4, 4, 6, 6]
    assert all(cut.reaches_taps(sender, 15_000) for sender in range(6))


def test_partitions_cut_different_participants(mapping: dict[str, Any]) -> None:
    """Each draws its own; two at a time add up."""
    both = network(mapping, "outgoing", "incoming")
    hears_all = np.array(reached(both, 15_000)).all(axis=0)
    heard_by_all = np.array(reached(both, 15_000)).all(axis=1)
    assert hears_all.tolist() != heard_by_all.tolist()
