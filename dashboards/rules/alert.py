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
    """Severity of an alert; it determines who is notified, and when."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


def graded(warning: T, critical: T) -> tuple[tuple[Severity, T], ...]:
    """Pair each value with the severity of the alert that uses the value."""
    return ((Severity.WARNING, warning), (Severity.CRITICAL, critical))


class Subject(enum.Enum):
    """What an alert is about; the enumeration's values are headings."""

    CHANNEL = "Channels"
    GROUP = "Groups of MVDS"
    TAP = "Taps"
    MONITOR = "The monitor"
    MIRROR = "Mirrors"


_PATHS = {
    Subject.CHANNEL: ("channel", ""),
    Subject.GROUP: ("views/mvds/one", "views/mvds"),
}
"""Subject -> paths of the page about one channel or group, and of the page about all,
relative to the status page's URL. Alerts on these subjects have the label ``channel``.
"""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert. Alerts with the same name differ in severity or time windows.

    Attributes:
        name: Name in CamelCase; also the name of the runbook.
        expression: PromQL. For each series in the result, an alert fires.
        summary: One sentence without figures.
        description: Template with figures and their units.
        holds: How long, in real time, the expression must have a result before the
            alert fires.
        subject: What the alert is about. If this is a channel or a group, the alert has
            the label ``channel``.
        dashboard: Uid of the dashboard to which the alert links.
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
            # The variable `job` of dashboards selects a monitor. A mirror has another
            # job, so the URL does not set the variable.
            return {"runbook_url": runbook, "dashboard_url": dashboard}
        # If no monitor ever ran, the alert has no label `job`.
        dashboard += "{{ with $labels.job }}?var-job={{ . | urlquery }}{{ end }}"
        if self.subject not in _PATHS:
            return {"runbook_url": runbook, "dashboard_url": dashboard}
        path, path_of_all = _PATHS[self.subject]
        channel = "{{ $labels.channel | urlquery }}"
        # The channel `other` is the sum of all channels beyond the label limit, and has
        # no page.
        if_not_other = '{{ if ne $labels.channel "other" }}%s{{ else }}%s{{ end }}'
        page = if_not_other % (f"{path}?id={channel}", path_of_all)
        return {
            "runbook_url": runbook + if_not_other % (f"?channel={channel}", ""),
            "dashboard_url": f"{dashboard}&var-channel={channel}",
            "page_url": f"{links.monitor_url}/{page}",
        }
