"""An incident in which messages are lost, from the frames to the operator's webhook."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from connectors.simulator.scenario_files import load_scenario
from dashboards import CAPACITY, CHANNEL, GROUPS, MONITOR, Links
from dashboards.panels import dashboards
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from tests.support.dashboards.expressions import expressions, substitute
from tests.support.e2e.observed import GRAFANA_URL, Observe, Observed, as_long_as
from tests.support.prometheus import Labels
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.needs("prometheus", "prometheus-alertmanager"),
]

HERE = Path(__file__).parent

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

SHOWN = ("mended", "incident", "muted")
"""Channels that the dashboards are asked for: with repairs, with losses, muted."""

_EACH = (
    "Staleness of the forecasts",
    "Bytes a day, next seven days",
    "Forecasts",
    "Messages a day, next seven days",
)
FORECASTS = {
    CAPACITY: (*_EACH, "Headroom of the nearest limits", "When limits are reached"),
    GROUPS: _EACH,
}
"""Panels of forecasts by dashboard."""

FLEETING = {
    (MONITOR, "Oldest record waiting"): "one waits only until Kafka has it",
    (MONITOR, "Clocks of the taps"): "traffic is played, which says nothing of clocks",
    (MONITOR, "Served to other mirrors"): "no mirror is served to another",
    (MONITOR, "Peers of audit servers"): "no mirror is served to another",
    (CAPACITY, "Segments per message"): "simulated participants send no segments",
    **{
        (board, panel): "forecasts need 14 days of history"
        for board, panels in FORECASTS.items()
        for panel in panels
    },
}
"""Panels, by dashboard and title, that have no number, or at moments only, and why."""


@pytest.fixture(scope="module")
def incident(observe: Observe) -> Iterator[Observed]:
    """The incident in two channels, one of them muted, beside channels without one."""
    scenario = load_scenario(str(HERE / "incident.toml"))
    calm = ("quiet", "clean", str(HERE / "mended.toml"), "mvds-interactive")
    beside = [as_long_as(scenario, load_scenario(name)) for name in calm]
    table = ChannelTable(
        [
            ChannelEntry("incident", name=NAME),
            ChannelEntry("muted", mute_until_ms=FOR_EVER_MS),
        ]
    )
    with observe([scenario, *beside], table) as play:
        yield play


def test_incident_fires_only_the_expected_alerts(
    incident: Observed,
) -> None:
    """At any time, in Prometheus and at the webhook."""
    incident.wait_for_pending()
    assert told(incident.alerts("firing")) == EXPECTED
    assert told(one["labels"] for one in incident.told("firing")) == EXPECTED


def test_every_alert_is_resolved_after_the_incident(incident: Observed) -> None:
    """The webhook gets the resolution."""
    wait_for(
        lambda: told(one["labels"] for one in incident.told("resolved")) == EXPECTED
    )
    assert not incident.prometheus.query('ALERTS{alertstate="firing"}')


def test_alert_has_names_and_working_links(incident: Observed) -> None:
    """The channel's name is that of the operator's table."""
    for alert in incident.told("firing"):
        said = alert["annotations"]
        assert said["summary"]
        assert NAME in said["description"]
        assert alert["labels"]["alertname"] in answer(said["runbook_url"])
        assert html.escape(NAME) in answer(said["page_url"])
        dashboard = urlsplit(said["dashboard_url"])
        assert said["dashboard_url"].startswith(f"{GRAFANA_URL}/d/{CHANNEL}?")
        assert parse_qs(dashboard.query)["var-channel"] == ["incident"]


def test_muted_channel_fires_no_alert(incident: Observed) -> None:
    """Its losses are in the figures; no alert is even pending."""
    lost = 'sds_dependency_gaps_closed_total{channel="muted", outcome="lost"} > 0'
    undelivered = 'sds_deliveries_total{channel="muted", outcome="lost"} > 0'
    assert incident.prometheus.query(lost)
    assert incident.prometheus.query(undelivered)
    assert "muted" not in channels_of(incident)


def test_channels_without_incident_fire_no_alert(incident: Observed) -> None:
    """Neither quiet ones, nor one that loses and repairs messages."""
    frames = incident.prometheus.query("sum by (channel) (sds_frames_total) > 0")
    assert {labels["channel"] for labels, _ in frames} == {
        *("incident", "muted", "mended"),
        *("pausing-1", "pausing-2", "silent-1", "silent-2"),
        *("clean-1", "clean-2", "clean-3"),
    }
    repaired = 'sds_repair_episodes_total{channel="mended", outcome="answered"} > 0'
    assert incident.prometheus.query(repaired)
    assert channels_of(incident) == {"incident"}


def test_every_rule_can_be_evaluated(incident: Observed) -> None:
    """Prometheus only logs and counts rules that fail."""
    assert incident.prometheus.failed_evaluations() == 0


def test_every_panel_has_data(incident: Observed) -> None:
    """Each query gives a number, or is listed with a reason why not."""
    asked = [
        one for board in dashboards(Links()).values() for one in expressions(board)
    ]
    empty = {
        (one.dashboard, one.panel)
        for one in asked
        if not any(
            has_number(incident, one.expr, channel)
            for channel in ([".+"] if one.dashboard == GROUPS else SHOWN)
        )
    }
    assert empty <= FLEETING.keys()
    assert FLEETING.keys() <= {(one.dashboard, one.panel) for one in asked}


def has_number(incident: Observed, expression: str, channel: str) -> bool:
    """Whether a query gives a number at some time of the play."""
    values = {
        "job": "sds-monitor",
        "channel": channel,
        "__range": f"{incident.ended_s - incident.begun_s:.0f}s",
        "__rate_interval": "2s",
    }
    series = incident.prometheus.query_range(
        substitute(expression, values), incident.begun_s, incident.ended_s, step_s=2.0
    )
    return any(not math.isnan(value) for _, found in series for value in found)


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


def channels_of(incident: Observed) -> set[str]:
    """The channels that alerts were about, pending ones too."""
    alerts = incident.alerts("firing") + incident.alerts("pending")
    return {one["channel"] for one in alerts if "channel" in one}


def answer(url: str) -> str:
    """The page at an address."""
    response = httpx.get(url)
    assert response.status_code == httpx.codes.OK, url
    return response.text
