"""Why a view has its verdict, in one sentence with the figures behind it."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.web import words
from sds_core.observer.blindness import blind_until_ms, excuse_of
from sds_core.observer.cause_finding import causes_of
from sds_core.observer.kinds import AnyKind
from sds_core.observer.sds.evidence import count_without
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.view_totals import Excused, ViewTotals

_RUNBOOKS = {
    "lost": "SdsMessagesLost",
    "undelivered": "SdsDeliveryBudgetBurn",
    "unacknowledged": "SdsAcknowledgementBudgetBurn",
    "repair_expired": "SdsRepairExpiring",
    "bloom_saturated": "SdsBloomNearSaturation",
    "tap_hole": "SdsTapBlind",
    "no_records": "SdsTapSilent",
    "audit_incomplete": "SdsMirrorIncomplete",
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
            return _undelivered(snapshot, totals)
        case "lost" if isinstance(totals, ChannelTotals):
            return _lost(snapshot, totals)
        case code:
            return words.reason(code)


def likely_causes(
    snapshot: Snapshot, totals: ViewTotals, kind: AnyKind = CHANNELS
) -> Sequence[str]:
    """Return the likely causes of a view's verdict, a sentence each; often none.

    Args:
        snapshot: Has the taps, and the clock.
        totals: Figures of the view.
        kind: Its kind.
    """
    return [one.sentence(words.short) for one in causes_of(snapshot, totals, kind)]


def causes_in_brief(snapshot: Snapshot, totals: ViewTotals, kind: AnyKind) -> str:
    """Return the likely causes in a few words, for a row; empty without one."""
    found = [one.in_brief(words.short) for one in causes_of(snapshot, totals, kind)]
    return f"Likely cause: {'; '.join(found)}" if found else ""


def _interrupted(snapshot: Snapshot, totals: ViewTotals) -> str:
    until_ms = blind_until_ms(totals.observers, snapshot, snapshot.observer)
    if until_ms is None:
        return "the taps are silent"
    again = words.since(words.next_minute_ms(until_ms), snapshot.clock_ms)
    return f"the taps were interrupted; verdict again at {again}"


def _lost(snapshot: Snapshot, totals: ChannelTotals) -> str:
    if totals.evidence is None:
        return words.reason("lost")
    count = count_without(totals.evidence.lost, _excuse(snapshot, totals))
    senders = "its sender" if count == 1 else "their senders"
    return f"{words.counted(count, 'message')} reached nobody but {senders}"


def _undelivered(snapshot: Snapshot, totals: ChannelTotals) -> str:
    if totals.evidence is None:
        return words.reason("undelivered")
    excused = _excuse(snapshot, totals)
    counts = {
        name: count
        for name, found in totals.evidence.lacking
        if (count := count_without(found, excused))
    }
    if not counts:
        return words.reason("undelivered")
    worst = max(counts, key=lambda name: counts[name])
    name = words.short(worst)
    text = f"{words.counted(counts[worst], 'message')} did not reach {name}"
    others = len(counts) - 1 + totals.evidence.lacking_others
    if not others:
        return text
    verb = "lacks" if others == 1 else "lack"
    rest = words.counted(others, "other participant")
    return f"{text}; {rest} {verb} messages too"


def _excuse(snapshot: Snapshot, totals: ChannelTotals) -> Excused:
    excused = excuse_of(totals.observers, snapshot, snapshot.observer)
    return _nothing_excused if excused is None else excused


def _nothing_excused(since_ms: int, found_ms: int) -> bool:
    return False
