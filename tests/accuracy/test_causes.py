"""The causes that the monitor states are those that the simulated scenario made."""

from __future__ import annotations

import functools

import pytest

from tests.support.accuracy.causes import (
    CAUSE_SCENARIOS,
    CAUSED,
    KINDS,
    CauseFigures,
    judge,
)

pytestmark = pytest.mark.slow


@functools.cache
def stated(name: str) -> CauseFigures:
    """What is stated in a scenario."""
    return judge(CAUSE_SCENARIOS[name], 1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cut-sender", "one_sender"),
        ("cut-receiver", "one_participant"),
        ("cut-receiver", "no_repair_requests"),
        ("deaf", "one_participant"),
        ("without-repair", "no_repair_requests"),
        ("small-filters", "filters_saturated"),
        ("gives-up", "retries_ended"),
        ("unheard", "tap_gap"),
    ],
)
def test_cause_that_the_scenario_made_is_stated(name: str, kind: str) -> None:
    """And no other that it did not make."""
    figures = stated(name)
    assert figures.right[kind] == 1
    assert not figures.wrong


@pytest.mark.parametrize(
    "name", ["split", "half-deaf", "with-repair", "tail", "lost-tail", "lossy"]
)
def test_trouble_without_one_cause_has_none_stated(name: str) -> None:
    """Something is wrong in all of them, and none of the rules explains it."""
    assert name not in CAUSED
    figures = stated(name)
    assert figures.bad
    assert figures.statements == ()


def test_every_rule_is_tried_by_a_scenario() -> None:
    """A precision of nothing is none."""
    assert frozenset().union(*CAUSED.values()) == set(KINDS)
    assert CAUSED.keys() <= CAUSE_SCENARIOS.keys()
    assert CauseFigures() + CauseFigures() == CauseFigures()
