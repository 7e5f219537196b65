"""An incident in which messages are lost, from the frames to the operator's webhook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from connectors.simulator.scenario_files import load_scenario
from dashboards.links import CHANNEL
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from tests.e2e.conftest import Observe
from tests.e2e.observed import GRAFANA_URL, Observed, as_long_as
from tests.support.prometheus import Labels
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

NAME = "Three people & a cable"
"""What the operator calls the channel."""

FOR_EVER_MS = 4_000_000_000_000

Told = tuple[str, str, str, str]
"""Name, severity, channel and window of an alert; empty where it has no such label."""

EXPECTED: set[Told] = {
    # Five messages of the one who was cut off reached nobody: fewer than the ten that
    # make it critical.
    ("SdsMessagesLost", "warning", "incident", ""),
    # Of some 90 deliveries 23 fail, a quarter, where 1 % may: more than 14.4 and than
    # 6 times as much. The windows of 1 and 6 hours hold the whole play, which has more
    # than the 30 and 60 deliveries that these ask for, and fewer than the 120 and 240
    # of the slower windows.
    ("SdsDeliveryBudgetBurn", "critical", "incident", "1h"),
    ("SdsDeliveryBudgetBurn", "critical", "incident", "6h"),
    # Not SdsAcknowledgementBudgetBurn: of three people two hear each other all the
    # time. Not SdsRepairExpiring: nobody asks for a repair.
}


@pytest.fixture(scope="module")
def incident(observe: Observe) -> Iterator[Observed]:
    """The incident in two channels, one of them muted, beside calm and quiet ones."""
    scenario = load_scenario(str(Path(__file__).with_name("incident.toml")))
    beside = [as_long_as(scenario, load_scenario(name)) for name in ("quiet", "clean")]
    table = ChannelTable(
        [
            ChannelEntry("incident", name=NAME),
            ChannelEntry("muted", mute_until_ms=FOR_EVER_MS),
        ]
    )
    with observe([scenario, *beside], table) as play:
        yield play


def test_incident_fires_what_it_is_expected_to_and_nothing_else(
    incident: Observed,
) -> None:
    """Nothing at any time, neither in Prometheus nor at the webhook."""
    assert told(incident.alerts("firing")) == EXPECTED
    assert told(one["labels"] for one in incident.webhook.firing) == EXPECTED


def test_every_alert_is_over_when_the_incident_is(incident: Observed) -> None:
    """The webhook is told so, and nothing is about to fire."""
    wait_for(lambda: told(over(incident)) == EXPECTED, 30)
    assert not incident.prometheus.query("ALERTS")


def test_alert_says_what_and_where_to_look(incident: Observed) -> None:
    """With the name that the operator knows, and links that lead somewhere."""
    for alert in incident.webhook.firing:
        said = alert["annotations"]
        assert said["summary"]
        assert NAME in said["description"]
        runbook = httpx.get(said["runbook_url"])
        assert runbook.status_code == httpx.codes.OK
        assert alert["labels"]["alertname"] in runbook.text
        page = httpx.get(said["page_url"])
        assert page.status_code == httpx.codes.OK
        assert html.escape(NAME) in page.text
        dashboard = urlsplit(said["dashboard_url"])
        assert said["dashboard_url"].startswith(f"{GRAFANA_URL}/d/{CHANNEL}?")
        assert parse_qs(dashboard.query)["var-channel"] == ["incident"]


def test_muted_channel_is_not_told_of(incident: Observed) -> None:
    """Its losses are in the figures, and in no alert, not even a pending one."""
    lost = 'sds_dependency_gaps_closed_total{channel="muted", outcome="lost"} > 0'
    undelivered = 'sds_deliveries_total{channel="muted", outcome="lost"} > 0'
    assert incident.prometheus.query(lost)
    assert incident.prometheus.query(undelivered)
    assert "muted" not in channels_of(incident.alerts("firing"))
    assert "muted" not in channels_of(incident.alerts("pending"))


def test_calm_and_quiet_channels_are_not_told_of(incident: Observed) -> None:
    """They are judged, silent ones as quiet, and no alert is about them."""
    verdicts = incident.prometheus.query(
        'sds_channel_verdict{channel=~"clean-.|silent-.|pausing-."} == 1'
    )
    assert {labels["channel"]: labels["verdict"] for labels, _ in verdicts} == {
        "clean-1": "quiet",
        "clean-2": "quiet",
        "clean-3": "quiet",
        "pausing-1": "quiet",
        "pausing-2": "quiet",
        "silent-1": "quiet",
        "silent-2": "quiet",
    }
    channels = channels_of(incident.alerts("firing") + incident.alerts("pending"))
    assert channels == {"incident"}


def told(alerts: Iterable[Labels]) -> set[Told]:
    """Those labels of alerts that tell them apart here."""
    return {
        (
            one["alertname"],
            one["severity"],
            one.get("channel", ""),
            one.get("window", ""),
        )
        for one in alerts
    }


def over(incident: Observed) -> list[Labels]:
    """Labels of the alerts of which the webhook's last word is that they are over."""
    return [one["labels"] for one in incident.webhook.resolved]


def channels_of(alerts: Iterable[Labels]) -> set[str]:
    """The channels that alerts are about."""
    return {one["channel"] for one in alerts if "channel" in one}
