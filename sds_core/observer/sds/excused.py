"""Lists findings on a channel that capture gaps or incomplete mirrors excuse."""

from __future__ import annotations

from collections.abc import Sequence

from sds_core.observer.excused import ExcusedFindings, Excusing, Found, excused_of
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings

LEAST_EXPIRED = 10
"""`SdsRepairExpiring` fires only if at least this number of repair episodes expired."""

ALERTS = {
    "lost": "SdsMessagesLost",
    "undelivered": "SdsDeliveryBudgetBurn",
    "unacknowledged": "SdsAcknowledgementBudgetBurn",
    "repair_expired": "SdsRepairExpiring",
}
"""For each kind of finding, the name of the alert that fires on such findings."""


def excused_findings(
    totals: ChannelTotals, excusing: Excusing, settings: ObserverSettings
) -> tuple[ExcusedFindings, ...]:
    """Return the findings on a channel, one item for each kind with excused findings.

    If a lost message was sent in a capture gap, a history may first name the message
    after the gap. Therefore, a capture gap in the `gap_deadline_ms` before the first
    naming also excuses the loss.
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
