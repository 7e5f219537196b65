"""Dashboards, rules and alerts as code, and the URLs that connect them."""

from __future__ import annotations

from dataclasses import dataclass

FLEET, CHANNEL, REPAIR = "sds-fleet", "sds-channel", "sds-repair"
CAPACITY, MONITOR = "sds-capacity", "sds-monitor"
GROUPS = "mvds-groups"
"""Uids of the dashboards."""


@dataclass(frozen=True, slots=True)
class Links:
    """Base URLs as a reader's browser reaches them, without a slash at the end.

    By default, another server has the runbooks, because the monitor may be down.
    """

    monitor_url: str = "http://localhost:9108"
    grafana_url: str = "http://localhost:3000"
    runbook_url: str = "http://localhost:8000/runbooks"

    def runbook(self, alert: str) -> str:
        """Return the URL of an alert's runbook, as site and monitor serve it."""
        return f"{self.runbook_url}/{alert}"

    def dashboard(self, uid: str) -> str:
        """Return the URL of a dashboard, without variables."""
        return f"{self.grafana_url}/d/{uid}"
