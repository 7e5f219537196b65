"""One alert, and the rule that is made of it."""

from __future__ import annotations

import enum
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import Any

from dashboards.links import Links
from dashboards.rules.pace import Pace


class Severity(enum.StrEnum):
    """Who is to know, and when."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Subject(enum.Enum):
    """What an alert is about; its value is a heading."""

    CHANNEL = "Channels"
    TAP = "Taps"
    MONITOR = "The monitor"
    MIRROR = "Mirrors"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; several of one name differ in severity or windows.

    Attributes:
        name: In CamelCase; also that of its runbook.
        severity: Who is to know.
        expression: PromQL; what it gives fires.
        summary: One sentence without figures.
        description: A template, with figures and their units.
        holds: For how long the expression must give something, in life.
        subject: What it is about; those on a channel have a label ``channel``.
        dashboard: Uid of the one to look at.
        labels: Further ones.
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
        """As a Prometheus rule file has it."""
        held = {"for": pace(self.holds)} if self.holds else {}
        return {
            "alert": self.name,
            "expr": self.expression,
            **held,
            "labels": {"severity": self.severity.value, **self.labels},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": links.runbook(self.name),
                **self._pages(links),
            },
        }

    def _pages(self, links: Links) -> dict[str, str]:
        dashboard = links.dashboard(self.dashboard)
        if self.subject is Subject.MIRROR:
            # Dashboards are about one monitor's job, and a mirror has another.
            return {"dashboard_url": dashboard}
        # A monitor that was never seen has no job.
        dashboard += "{{ with $labels.job }}?var-job={{ . | urlquery }}{{ end }}"
        if self.subject is not Subject.CHANNEL:
            return {"dashboard_url": dashboard}
        channel = _escaped("channel")
        # The channels beyond the label budget have no page together.
        page = (
            f'{{{{ if ne $labels.channel "other" }}}}channel?id={channel}{{{{ end }}}}'
        )
        return {
            "dashboard_url": f"{dashboard}&var-channel={channel}",
            "page_url": f"{links.monitor_url}/{page}",
        }


def _escaped(label: str) -> str:
    return f"{{{{ $labels.{label} | urlquery }}}}"
