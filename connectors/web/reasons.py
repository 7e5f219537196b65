"""Why a view has its verdict, in one sentence with the figures behind it."""

from __future__ import annotations

from connectors.web import words
from sds_core.observer.blindness import blind_until_ms
from sds_core.observer.sds.participant_figures import unpack_participants
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.view_totals import ViewTotals

_RUNBOOKS = {
    "lost": "SdsMessagesLost",
    "undelivered": "SdsDeliveryBudgetBurn",
    "unacknowledged": "SdsAcknowledgementBudgetBurn",
    "repair_expired": "SdsRepairExpiring",
    "bloom_saturated": "SdsBloomNearSaturation",
    "tap_hole": "SdsTapBlind",
    "no_records": "SdsTapSilent",
}


def runbook_of(reason: str) -> str:
    """Return the name of the runbook for the reason of a verdict; empty without one."""
    return _RUNBOOKS.get(reason, "")


def reason_of(snapshot: Snapshot, totals: ViewTotals) -> str:
    """Return the reason of a view's verdict in words.

    Args:
        snapshot: Has the taps, and the clock.
        totals: Figures of the view.
    """
    match totals.verdict_reason:
        case "tap_hole":
            return _interrupted(snapshot, totals)
        case "undelivered" if isinstance(totals, ChannelTotals):
            return _undelivered(totals)
        case "lost" if isinstance(totals, ChannelTotals):
            return _lost(totals)
        case code:
            return words.reason(code)


def _interrupted(snapshot: Snapshot, totals: ViewTotals) -> str:
    until_ms = blind_until_ms(totals.observers, snapshot, snapshot.observer)
    if until_ms is None:
        return "the taps are silent"
    again = words.since(words.next_minute_ms(until_ms), snapshot.clock_ms)
    return f"the taps were interrupted; verdict again at {again}"


def _lost(totals: ChannelTotals) -> str:
    if totals.evidence is None:
        return words.reason("lost")
    count = sum(number for *_, number in totals.evidence.lost)
    senders = "its sender" if count == 1 else "their senders"
    return f"{words.counted(count, 'message')} reached nobody but {senders}"


def _undelivered(totals: ChannelTotals) -> str:
    rows = unpack_participants(totals.participant_table).participants
    lacking = [one for one in rows if one.undelivered]
    if not lacking:
        return words.reason("undelivered")
    worst, *others = lacking
    name = words.short(worst.name)
    text = f"{words.counted(worst.undelivered, 'message')} did not reach {name}"
    if not others:
        return text
    verb = "lacks" if len(others) == 1 else "lack"
    rest = words.counted(len(others), "other participant")
    return f"{text}; {rest} {verb} messages too"
