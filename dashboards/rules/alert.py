"""An alert, and its Prometheus rule."""

from __future__ import annotations

import enum
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from dashboards import Links
from dashboards.rules.pace import Pace

T = TypeVar("T")


class Severity(enum.StrEnum):
    """Who is notified, and when."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


def graded(warning: T, critical: T) -> tuple[tuple[Severity, T], ...]:
    """Return the values of a warning and of a critical alert, with severities."""
    return ((Severity.WARNING, warning), (Severity.CRITICAL, critical))


class Subject(enum.Enum):
    """Subject of an alert; its value is a heading."""

    CHANNEL = "Channels"
    GROUP = "Groups of MVDS"
    TAP = "Taps"
    MONITOR = "The monitor"
    MIRROR = "Mirrors"


_PATHS = {Subject.CHANNEL: "channel", Subject.GROUP: "views/mvds/one"}
"""Paths on the status page for subjects with the label ``channel``."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; alerts with the same name differ in severity or windows.

    Attributes:
        name: Name in CamelCase; also the name of the runbook.
        expression: PromQL; each series in its result fires an alert.
        summary: One sentence without figures.
        description: Template with figures and their units.
        holds: Real time for which the expression must have a result.
        subject: Alerts on a channel or group have the label ``channel``.
        dashboard: Uid of the dashboard to open.
    """

    name: str
    severity: Severity
    expression: str
    summary: str
    description: str
    holds: timedelta = timedelta()
    _: KW_ONLY
    subject: Subject
    dashboard: str
    labels: dict[str, str] = field(default_factory=dict)

    def rule(self, links: Links, pace: Pace) -> dict[str, Any]:
        """Return the alert in the form of a Prometheus rule file."""
        held = {"for": pace(self.holds)} if self.holds else {}
        return {
            "alert": self.name,
            "expr": self.expression,
            **held,
            "labels": {"severity": self.severity.value, **self.labels},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                **self._pages(links),
            },
        }

    def _pages(self, links: Links) -> dict[str, str]:
        dashboard = links.dashboard(self.dashboard)
        runbook = links.runbook(self.name)
        if self.subject is Subject.MIRROR:
            # Dashboards select a monitor's job; a mirror has a different job.
            return {"runbook_url": runbook, "dashboard_url": dashboard}
        # A monitor that never ran has no label `job`.
        dashboard += "{{ with $labels.job }}?var-job={{ . | urlquery }}{{ end }}"
        path = _PATHS.get(self.subject)
        if path is None:
            return {"runbook_url": runbook, "dashboard_url": dashboard}
        channel = "{{ $labels.channel | urlquery }}"
        # `other` stands for the channels beyond the label limit and has no page.
        if_not_other = '{{ if ne $labels.channel "other" }}%s{{ end }}'
        page = if_not_other % f"{path}?id={channel}"
        return {
            "runbook_url": runbook + if_not_other % f"?channel={channel}",
            "dashboard_url": f"{dashboard}&var-channel={channel}",
            "page_url": f"{links.monitor_url}/{page}",
        }
