"""Dashboards, rules and alerts as code, and the URLs that connect them."""

from __future__ import annotations

from dataclasses import dataclass

FLEET, CHANNEL, REPAIR = "sds-fleet", "sds-channel", "sds-repair"
CAPACITY, MONITOR = "sds-capacity", "sds-monitor"
GROUPS = "mvds-groups"
"""Uids of the dashboards."""


@dataclass(frozen=True, slots=True)
class Links:
    """Base URLs of the links, without a slash at the end.

    The browsers of readers must be able to open these URLs. The runbooks are on the
    documentation's site or on the monitor. The default is the site, because the monitor
    may be down.
    """

    monitor_url: str = "http://localhost:9108"
    grafana_url: str = "http://localhost:3000"
    runbook_url: str = "http://localhost:8000/runbooks"

    def runbook(self, alert: str) -> str:
        """Return the URL of an alert's runbook."""
        return f"{self.runbook_url}/{alert}"

    def dashboard(self, uid: str) -> str:
        """Return the URL of a dashboard, without variables."""
        return f"{self.grafana_url}/d/{uid}"
