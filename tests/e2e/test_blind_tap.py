"""Blind taps are reported, and nothing that they did not see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.simulator.scenario_files import load_scenario
from tests.support.e2e.observed import Observe, Observed, as_long_as

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.needs("prometheus", "prometheus-alertmanager"),
]


@pytest.fixture(scope="module")
def blind_taps(observe: Observe) -> Iterator[Observed]:
    """One that is down, then deaf, and loses records; one that finds false losses.

    Both are down at the same time, in which the whole topic is silent.
    """
    unheard = load_scenario(str(Path(__file__).with_name("unheard.toml")))
    with observe([unheard, as_long_as(unheard, load_scenario("tap-blind"))]) as play:
        yield play


def test_blind_taps_fire_only_alerts_on_blindness(blind_taps: Observed) -> None:
    """Then or later, neither for missed records nor for apparent losses."""
    prometheus = blind_taps.prometheus
    assert prometheus.query("sds_tap_missing_records_total > 0")
    assert prometheus.query('sds_dependency_gaps_closed_total{outcome="lost"} > 0')
    blind_taps.wait_for_pending(but="SdsTapBlind")
    fired = {one["alertname"] for one in blind_taps.alerts("firing")}
    told = {one["labels"]["alertname"] for one in blind_taps.told("firing")}
    assert fired == told == {"SdsTapBlind"}


def test_all_blind_channels_are_one_alert(blind_taps: Observed) -> None:
    """It has no channel label and is sent once per severity."""
    told = {tuple(sorted(one["labels"].items())) for one in blind_taps.told("firing")}
    assert len(told) == len({dict(labels)["severity"] for labels in told})
    assert not any("channel" in dict(labels) for labels in told)


def test_every_rule_can_be_evaluated_while_channels_are_blind(
    blind_taps: Observed,
) -> None:
    """Prometheus only logs and counts rules that fail."""
    assert blind_taps.prometheus.failed_evaluations() == 0
