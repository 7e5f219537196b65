"""Where links of dashboards and alerts lead."""

from __future__ import annotations

from dataclasses import dataclass

FLEET, CHANNEL, REPAIR = "sds-fleet", "sds-channel", "sds-repair"
CAPACITY, MONITOR = "sds-capacity", "sds-monitor"
"""The dashboards' uids."""


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses as the people see them who follow a link.

    Attributes:
        monitor_url: Of the status page, without a slash at the end.
        grafana_url: Of Grafana, without a slash at the end.
    """

    monitor_url: str = "http://localhost:9108"
    grafana_url: str = "http://localhost:3000"

    def runbook(self, alert: str) -> str:
        """The page of the status page that says what to do about an alert."""
        return f"{self.monitor_url}/runbooks/{alert}"

    def dashboard(self, uid: str) -> str:
        """A dashboard, without variables."""
        return f"{self.grafana_url}/d/{uid}"
