"""Firing alerts in words: one entry for each name and severity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.prometheus.firing import FiringAlert, FiringAlerts
from connectors.web import words

LISTED_ALERTS = 5
"""Alerts in the head of each page; the page of runbooks has all."""

_LISTED_CHANNELS = 3


@dataclass(frozen=True, slots=True)
class FiringWords:
    """An alert that fires, for one channel or several.

    Attributes:
        name: Name of the alert and of its runbook.
        severity: Its severity.
        what: The channels for which it fires; empty if it is of no channel.
    """

    name: str
    severity: str
    what: str


@dataclass(frozen=True, slots=True)
class FiringHead:
    """The alerts in the head of a page.

    Attributes:
        alerts: At most `LISTED_ALERTS`, the gravest first.
        hidden: Number of others.
        by_name: Each alert that fires -> its most severe severity.
        note: Why it is not known which alerts fire; empty if it is known.
    """

    alerts: Sequence[FiringWords]
    hidden: int
    by_name: dict[str, str]
    note: str


def firing_words(firing: FiringAlerts) -> FiringHead:
    """Describe the alerts that fire in words."""
    groups: dict[tuple[str, str], list[FiringAlert]] = {}
    for one in firing.alerts:
        groups.setdefault((one.name, one.severity), []).append(one)
    entries = [
        FiringWords(words.short(name), words.short(severity), _channels(some))
        for (name, severity), some in groups.items()
    ]
    by_name: dict[str, str] = {}
    for one in firing.alerts:
        by_name.setdefault(one.name, one.severity)
    return FiringHead(
        entries[:LISTED_ALERTS],
        max(0, len(entries) - LISTED_ALERTS),
        by_name,
        _note(firing),
    )


def _channels(some: Sequence[FiringAlert]) -> str:
    names = sorted({one.channel for one in some if one.channel})
    listed = [words.short(name) for name in names[:_LISTED_CHANNELS]]
    if len(names) > len(listed):
        listed.append(f"{words.number(len(names) - len(listed))} more")
    return ", ".join(listed)


def _note(firing: FiringAlerts) -> str:
    if not firing.asked:
        return (
            "Start the monitor with --prometheus URL, and the alerts that fire are "
            "listed here and in the head of each page."
        )
    if firing.problem:
        return f"Which alerts fire is not known: {firing.problem}."
    return "" if firing.alerts else "No alert fires."
