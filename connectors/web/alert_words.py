"""Describes in words the alerts that fire and the alerts that are held back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

from msgspec import Meta

from connectors.prometheus.firing import FiringAlert, FiringAlerts
from connectors.web import words
from connectors.web.naming import called, runbook_href, view_href
from sds_core.observer.excused import ExcusedFindings
from sds_core.observer.snapshot import Snapshot, Views

LISTED_HELD = 5

LISTED_ALERTS = 5

_LISTED_VIEWS = 3


@dataclass(frozen=True, slots=True)
class FiringHead:
    """Alerts that fire, as shown in the head of a page.

    Attributes:
        alerts: At most `LISTED_ALERTS` alerts, most severe first, each with name,
            severity and channels.
        by_name: Name of each alert that fires -> its highest severity.
        note: Why no alerts are listed; empty if alerts are listed.
    """

    alerts: Sequence[tuple[str, str, str]]
    hidden: int
    by_name: dict[str, str]
    note: str


def firing_words(firing: FiringAlerts) -> FiringHead:
    """Describe in words the alerts that fire."""
    groups: dict[tuple[str, str], list[FiringAlert]] = {}
    by_name: dict[str, str] = {}
    for alert in firing.alerts:
        groups.setdefault((alert.name, alert.severity), []).append(alert)
        by_name.setdefault(alert.name, alert.severity)
    entries = [
        (words.short(name), words.short(severity), _channels(some))
        for (name, severity), some in groups.items()
    ]
    return FiringHead(
        entries[:LISTED_ALERTS],
        max(0, len(entries) - LISTED_ALERTS),
        by_name,
        _note(firing),
    )


def _channels(some: Sequence[FiringAlert]) -> str:
    names = sorted({one.channel for one in some if one.channel})
    listed = [words.short(name) for name in names[:_LISTED_VIEWS]]
    if len(names) > len(listed):
        listed.append(f"{words.number(len(names) - len(listed))} more")
    return ", ".join(listed)


def _note(firing: FiringAlerts) -> str:
    if not firing.asked:
        return (
            "To see firing alerts here and at the top of each page, start the "
            "monitor with --prometheus URL."
        )
    if firing.problem:
        return f"It is unknown which alerts fire: {firing.problem}."
    return "" if firing.alerts else "No alert fires."


class HeldAlert(NamedTuple):
    """An alert that is held back for one view; `href` leads to the view's page."""

    alert: str
    runbook_href: str
    channel: str
    href: str
    why: str
    findings: str


class HeldHead(NamedTuple):
    """Alerts that are held back for views.

    Attributes:
        alerts: The listed alerts.
        hidden: Number of alerts that are held back but not listed.
    """

    alerts: Sequence[HeldAlert]
    hidden: int


def held_words(
    snapshot: Snapshot,
    some: Iterable[Views[Any]],
    name: str | None = None,
    most: int | None = LISTED_HELD,
) -> HeldHead:
    """Describe the alerts that are held back: at most `most`, or all if `most` is None.

    `name` selects the alerts of one view; None selects the alerts of all views.
    """
    found = [
        (views.kind, view, one)
        for views in some
        for view, one in views.held_back
        if name in (None, view)
    ]
    shown = found if most is None else found[:most]
    return HeldHead(
        [
            HeldAlert(
                one.alert,
                runbook_href(one.alert, view),
                called(snapshot, view, kind),
                view_href(kind, view),
                _why(one, snapshot.clock_ms),
                words.counted(one.excused, "finding"),
            )
            for kind, view, one in shown
        ],
        len(found) - len(shown),
    )


HeldObject = TypedDict(
    "HeldObject",
    {
        "alert": str,
        "channel": Annotated[str, Meta(description="Id of the channel or group.")],
        "reason": Annotated[str, Meta(description="`tap_hole` or `audit_incomplete`.")],
        "findings": Annotated[
            int, Meta(description="Number of findings that the alert does not count.")
        ],
        "from": Annotated[
            int,
            Meta(
                description="Start of the period in which messages may be missing, "
                "event time, Unix ms."
            ),
        ],
        "to": Annotated[
            int,
            Meta(description="End of the period (inclusive), event time, Unix ms."),
        ],
    },
)
HeldObject.__doc__ = (
    "An alert that is held back because taps or the mirror may have missed messages."
)


def held_object(channel: str, one: ExcusedFindings) -> HeldObject:
    """Return an alert that is held back as an object of the HTTP API."""
    return {
        "alert": one.alert,
        "channel": channel,
        "reason": one.excuse.reason,
        "findings": one.excused,
        "from": one.excuse.from_ms,
        "to": one.excuse.to_ms,
    }


def _why(one: ExcusedFindings, clock_ms: int) -> str:
    reason, from_ms, to_ms = one.excuse
    begin = words.since(from_ms, clock_ms).removesuffix(" UTC")
    end = words.since(to_ms, clock_ms).removesuffix(" UTC")
    if begin == end:
        return f"blind at {begin} ({reason})"
    return f"blind {begin} to {end} ({reason})"
