"""Recording rules and alerts in the form that Prometheus reads."""

from __future__ import annotations

from typing import Any

from dashboards import Links
from dashboards.rules.alert import Alert, Subject
from dashboards.rules.budget_alerts import budget_alerts
from dashboards.rules.channel_alerts import channel_alerts
from dashboards.rules.group_alerts import group_alerts
from dashboards.rules.mirror_alerts import mirror_alerts
from dashboards.rules.monitor_alerts import monitor_alerts
from dashboards.rules.pace import LIFE, Pace
from dashboards.rules.recording import recording_file
from dashboards.rules.tap_alerts import tap_alerts


def alerts(pace: Pace = LIFE) -> list[Alert]:
    """Return all alerts; alerts with the same name are adjacent."""
    return [
        *budget_alerts(),
        *channel_alerts(pace),
        *group_alerts(pace),
        *tap_alerts(pace),
        *monitor_alerts(pace),
        *mirror_alerts(pace),
    ]


def rule_files(links: Links, speed: float = 1.0) -> dict[str, dict[str, Any]]:
    """Return the contents of all rule files by name; for `speed`, see `Pace`.

    Raises:
        ValueError: The speed is not positive.
    """
    pace = Pace(speed)
    groups = [
        {
            "name": f"sds-{subject.name.lower()}",
            "rules": [
                alert.rule(links, pace)
                for alert in alerts(pace)
                if alert.subject is subject
            ],
        }
        for subject in Subject
    ]
    return {"recording": recording_file(pace), "alerts": {"groups": groups}}
