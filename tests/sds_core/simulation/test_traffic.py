"""When participants send messages."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from sds_core.simulation.scenario import Spell, Traffic
from sds_core.simulation.traffic import occasions

HOUR_MS = 3_600_000


def times(*, participants: int = 5, **traffic: Any) -> list[int]:
    """Return the occasions of an hour."""
    settings = Traffic(mean_interval_s=1, **traffic)
    return list(occasions(settings, participants, HOUR_MS, Random(1)))


def near(count: int, mean: float) -> bool:
    """Tell whether a count is within five standard deviations of a Poisson mean."""
    return abs(count - mean) <= 5 * math.sqrt(mean)


@pytest.mark.parametrize(("per", "mean"), [("channel", 3_600), ("participant", 18_000)])
def test_occasions_come_at_the_mean_interval(per: str, mean: int) -> None:
    """Each participant's own, or the channel's, in order and in time."""
    at = times(per=per)
    assert near(len(at), mean)
    assert at == sorted(at)
    assert at[-1] < HOUR_MS


def test_intervals_are_memoryless() -> None:
    """1/e of them are longer than their mean."""
    at = times()
    longer = sum(b - a > 1_000 for a, b in pairwise(at))
    share = 1 / math.e
    assert abs(longer - len(at) * share) <= 5 * math.sqrt(len(at) * share)


def test_spells_raise_and_silence_the_traffic() -> None:
    """At their rate, while they last; where two overlap, both."""
    at = times(
        spells=(
            Spell(from_s=600, until_s=1_200, rate=4),
            Spell(from_s=1_100, until_s=1_200, rate=2),
            Spell(from_s=1_800, until_s=2_400, rate=0),
        )
    )

    def count(from_s: int, until_s: int) -> int:
        return sum(from_s * 1_000 <= one < until_s * 1_000 for one in at)

    assert near(count(0, 600), 600)
    assert near(count(600, 1_100), 2_000)
    assert near(count(1_100, 1_200), 800)
    assert count(1_800, 2_400) == 0
    assert near(count(2_400, 3_600), 1_200)


def test_silence_throughout_ends_at_once() -> None:
    """It does not search for an occasion for ever."""
    assert times(spells=(Spell(from_s=0, until_s=3_600, rate=0),)) == []
