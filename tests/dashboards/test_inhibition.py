"""What a real Alertmanager sends with the shipped configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import yaml

from tests.support.alertmanager import running_alertmanager
from tests.support.waiting import wait_for
from tests.support.webhook import Webhook, listening_webhook

SHIPPED = Path(__file__).parents[2] / "dashboards/provisioning/alertmanager.yml"


class Pair(NamedTuple):
    """An alert that fires, and others of one name that fire beside it.

    Attributes:
        source: Labels of the first one.
        kept: Of one that is not told meanwhile, or none.
        told: Of one that is, of the same group as `kept`.
    """

    source: dict[str, str]
    kept: dict[str, str] | None
    told: dict[str, str]


def alert(name: str, severity: str, **labels: str) -> dict[str, str]:
    """Labels of an alert."""
    return {"alertname": name, "severity": severity, **labels}


PAIRS = [
    *(
        Pair(
            alert(name, "critical", job=name),
            alert("SdsMessagesLost", "critical", job=name, channel="c"),
            alert("SdsMessagesLost", "critical", job=f"not-{name}", channel="c"),
        )
        for name in ("SdsMonitorDown", "SdsMonitorStopped")
    ),
    *(
        Pair(
            alert("SdsMonitorBehind", severity, job=f"behind-{severity}"),
            None,
            alert("SdsMessagesLost", "critical", job=f"behind-{severity}", channel="c"),
        )
        for severity in ("warning", "critical")
    ),
    *(
        # What the taps may have caused is held back finding by finding.
        Pair(
            alert("SdsTapBlind", "warning", job="blind"),
            None,
            alert("SdsMessagesLost", "warning", job="blind", channel=channel),
        )
        for channel in ("other", "c")
    ),
    Pair(
        alert("SdsMessagesLost", "critical", job="sds", channel="c"),
        alert("SdsMessagesLost", "warning", job="sds", channel="c"),
        alert("SdsMessagesLost", "warning", job="sds", channel="d"),
    ),
    Pair(
        alert("SdsMirrorDown", "critical", job="mirror", instance="m1"),
        alert("SdsMirrorDown", "warning", job="mirror", instance="m1"),
        alert("SdsMirrorDown", "warning", job="mirror", instance="m2"),
    ),
]


@pytest.mark.needs("prometheus-alertmanager")
def test_alerts_are_sent_unless_another_inhibits_them(tmp_path: Path) -> None:
    """Each inhibition has one pair that it covers and one that it does not."""
    with (
        listening_webhook() as webhook,
        running_alertmanager(
            tmp_path / "alertmanager",
            yaml.safe_load(SHIPPED.read_text()),
            webhook.url,
        ) as address,
    ):
        sources = [pair.source for pair in PAIRS]
        fire(address, sources)
        wait_for(lambda: told(webhook) >= labels(sources))
        beside = [pair.told for pair in PAIRS]
        fire(address, [*(pair.kept for pair in PAIRS if pair.kept), *beside])
        # Groups are told whole: with the one that is told, the other one would be.
        wait_for(lambda: told(webhook) >= labels(beside))
        assert told(webhook) == labels([*sources, *beside])


def fire(address: str, alerts: Sequence[dict[str, str]]) -> None:
    """Post alerts, as Prometheus does."""
    httpx.post(
        f"http://{address}/api/v2/alerts", json=[{"labels": one} for one in alerts]
    ).raise_for_status()


def labels(alerts: Sequence[dict[str, str]]) -> set[frozenset[tuple[str, str]]]:
    """Those of each, to be compared."""
    return {frozenset(one.items()) for one in alerts}


def told(webhook: Webhook) -> set[frozenset[tuple[str, str]]]:
    """Labels of all that the webhook was told."""
    return labels([one["labels"] for one in webhook.told])
