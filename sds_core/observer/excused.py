"""Findings that do not count because the monitor may have missed messages.

They are what alerts on a channel are held back for (docs/figures.md, 8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sds_core.observer.sds.evidence import Evidence, Found
from sds_core.observer.settings import ObserverSettings

LEAST_EXPIRED = 10
"""Expired repair episodes that are enough for an alert."""

ALERTS = {
    "lost": "SdsMessagesLost",
    "undelivered": "SdsDeliveryBudgetBurn",
    "unacknowledged": "SdsAcknowledgementBudgetBurn",
    "repair_expired": "SdsRepairExpiring",
}
"""Kind of finding -> the alert on it."""


class Excuse(NamedTuple):
    """Why a finding does not count.

    Attributes:
        reason: Reason of blindness: `tap_hole` or `audit_incomplete`.
        from_ms: Begin of the time in which messages may be missing, event time, Unix
            ms.
        to_ms: Its end, inclusive.
    """

    reason: str
    from_ms: int
    to_ms: int


Excusing = Callable[[int, int], Excuse | None]
"""Returns the excuse for evidence, by its begin and when it was found, Unix ms; None if
it counts."""


class ExcusedFindings(NamedTuple):
    """Findings of one kind in the window of a channel's verdict, some of them excused.

    Attributes:
        kind: Kind of the findings, a key of `ALERTS`.
        excuse: Why some do not count, from the begin of the first cause to the end of
            the last one.
        excused: Number of those that do not count, at least 1.
        counted: Number of the others.
        holds_back: Whether the alert would have reason to fire with the excused ones,
            and has none without them.
    """

    kind: str
    excuse: Excuse
    excused: int
    counted: int
    holds_back: bool

    @property
    def alert(self) -> str:
        """Name of the alert on findings of this kind."""
        return ALERTS[self.kind]


def excused_findings(
    evidence: Evidence, excusing: Excusing, settings: ObserverSettings
) -> tuple[ExcusedFindings, ...]:
    """Return the findings of each kind of which some are excused.

    A message that seems lost may have been sent in a hole and be named only later, so
    what may have hidden it reaches back further than for other findings.

    Args:
        evidence: What was found.
        excusing: What excuses it.
        settings: Settings of the rules.
    """
    undelivered = settings.undelivered_percent * evidence.pairs / 100
    unacknowledged = settings.unacknowledged_percent * evidence.messages / 100
    kinds: Sequence[tuple[str, Sequence[Found], float]] = (
        ("lost", _earlier(evidence.lost, settings.gap_deadline_ms), 0),
        ("undelivered", evidence.undelivered, undelivered),
        ("unacknowledged", evidence.unacknowledged, unacknowledged),
        ("repair_expired", evidence.expired, LEAST_EXPIRED - 1),
    )
    return tuple(
        one
        for kind, found, limit in kinds
        if (one := _excused(kind, found, limit, excusing)) is not None
    )


def _earlier(found: Sequence[Found], by_ms: int) -> list[Found]:
    """Return findings that begin earlier by a time, ms."""
    return [(since_ms - by_ms, at_ms, count) for since_ms, at_ms, count in found]


def _excused(
    kind: str, found: Sequence[Found], limit: float, excusing: Excusing
) -> ExcusedFindings | None:
    """Return the findings of one kind; None if all count.

    Args:
        kind: The kind.
        found: All of them.
        limit: Number above which the alert has reason to fire.
        excusing: What excuses them.
    """
    excuses: list[Excuse] = []
    excused = counted = 0
    for since_ms, found_ms, count in found:
        excuse = excusing(since_ms, found_ms)
        if excuse is None:
            counted += count
        else:
            excused += count
            excuses.append(excuse)
    if not excuses:
        return None
    span = Excuse(
        excuses[0].reason,
        min(one.from_ms for one in excuses),
        max(one.to_ms for one in excuses),
    )
    return ExcusedFindings(
        kind, span, excused, counted, counted <= limit < excused + counted
    )
