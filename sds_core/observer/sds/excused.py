"""Finds a channel's findings that are excused by capture gaps or incomplete mirrors."""

from __future__ import annotations

from collections.abc import Sequence

from sds_core.observer.excused import ExcusedFindings, Excusing, Found, excused_of
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings

LEAST_EXPIRED = 10
"""Minimum number of expired repair episodes for which an alert fires."""

ALERTS = {
    "lost": "SdsMessagesLost",
    "undelivered": "SdsDeliveryBudgetBurn",
    "unacknowledged": "SdsAcknowledgementBudgetBurn",
    "repair_expired": "SdsRepairExpiring",
}
"""Alert for each kind of finding."""


def excused_findings(
    totals: ChannelTotals, excusing: Excusing, settings: ObserverSettings
) -> tuple[ExcusedFindings, ...]:
    """Return a channel's findings by kind; omit a kind without excused findings.

    A lost message may have been sent in a capture gap and first named later. Therefore,
    capture gaps before the first naming also excuse lost messages.
    """
    evidence = totals.evidence
    if evidence is None:
        return ()
    undelivered = settings.undelivered_percent * evidence.pairs / 100
    unacknowledged = settings.unacknowledged_percent * evidence.messages / 100
    earlier_ms = settings.gap_deadline_ms
    lost = [(since_ms - earlier_ms, at_ms, n) for since_ms, at_ms, n in evidence.lost]
    kinds: Sequence[tuple[str, Sequence[Found], float]] = (
        ("lost", lost, 0),
        ("undelivered", evidence.undelivered, undelivered),
        ("unacknowledged", evidence.unacknowledged, unacknowledged),
        ("repair_expired", evidence.expired, LEAST_EXPIRED - 1),
    )
    return tuple(
        one
        for kind, found, limit in kinds
        if (one := excused_of(kind, ALERTS[kind], found, limit, excusing)) is not None
    )
