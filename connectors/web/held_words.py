"""Alerts that are held back, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from connectors.web import words
from connectors.web.naming import called, view_href
from sds_core.observer.excused import ExcusedFindings
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import Snapshot

LISTED_HELD = 5
"""Alerts in a banner; the page of runbooks has all."""


class HeldAlert(NamedTuple):
    """An alert that is held back for one channel.

    Attributes:
        alert: Name of the alert and of its runbook.
        channel: The channel as it is called.
        href: Address of its page, relative to the root of the site.
        why: Since when and until when messages may be missing, and why.
        findings: How many findings do not count.
    """

    alert: str
    channel: str
    href: str
    why: str
    findings: str


class HeldHead(NamedTuple):
    """The alerts that are held back.

    Attributes:
        alerts: Some of them, by channel.
        hidden: Number of others.
    """

    alerts: Sequence[HeldAlert]
    hidden: int


def held_words(
    snapshot: Snapshot, channel: str | None = None, most: int | None = LISTED_HELD
) -> HeldHead:
    """Describe the alerts that are held back.

    Args:
        snapshot: The figures.
        channel: The only channel of interest; None for all.
        most: Number that is described; None for all.
    """
    held = snapshot.views[CHANNELS.prefix].held_back
    found = [one for one in held if channel in (None, one[0])]
    shown = found if most is None else found[:most]
    return HeldHead(
        [
            HeldAlert(
                one.alert,
                called(snapshot, name, CHANNELS),
                view_href(CHANNELS, name),
                _why(one, snapshot.clock_ms),
                words.counted(one.excused, "finding"),
            )
            for name, one in shown
        ],
        len(found) - len(shown),
    )


def held_object(channel: str, one: ExcusedFindings) -> dict[str, Any]:
    """Return an alert that is held back as the API gives it."""
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
    begin, end = (_time(ms, clock_ms) for ms in (from_ms, to_ms))
    if begin == end:
        return f"blind at {begin} ({reason})"
    return f"blind {begin} to {end} ({reason})"


def _time(unix_ms: int, clock_ms: int) -> str:
    return words.since(unix_ms, clock_ms).removesuffix(" UTC")
