"""A tap that sees too little is told of, and nothing that it did not see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.simulator.scenario_files import load_scenario
from tests.e2e.conftest import Observe
from tests.e2e.observed import Observed

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def blind_tap(observe: Observe) -> Iterator[Observed]:
    """The only tap of a topic is down, then deaf, and loses records all the while."""
    with observe([load_scenario("tap-blind")]) as play:
        yield play


def test_blind_tap_fires_nothing_but_that_it_is_blind(blind_tap: Observed) -> None:
    """What it missed is no loss, and nothing else is about to fire."""
    fired = {one["alertname"] for one in blind_tap.alerts("firing")}
    pending = {one["alertname"] for one in blind_tap.alerts("pending")}
    told = {one["labels"]["alertname"] for one in blind_tap.told("firing")}
    assert fired == pending == told == {"SdsTapBlind"}


def test_all_channels_of_the_blind_tap_are_one_trouble(blind_tap: Observed) -> None:
    """The alert names how many there are, and has no label of a channel."""
    told = blind_tap.told("firing")
    assert {one["annotations"]["description"].split()[0] for one in told} == {"3"}
    assert not any("channel" in one["labels"] for one in told)


def test_every_rule_can_be_evaluated_while_channels_are_blind(
    blind_tap: Observed,
) -> None:
    """Prometheus only logs and counts what it cannot match."""
    assert blind_tap.prometheus.failed_evaluations() == 0
