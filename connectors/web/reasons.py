"""Why a view has its verdict, in one sentence with the figures behind it.

A verdict covers a window, other figures of a page an hour or everything: so each
sentence names its window.
"""

from __future__ import annotations

from collections.abc import Sequence

from connectors.web import words
from sds_core.observer.blindness import blind_until_ms, excuse_of
from sds_core.observer.cause_finding import causes_of
from sds_core.observer.kinds import AnyKind
from sds_core.observer.sds.evidence import Evidence, count_without
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
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
        snapshot: Has the taps, the clock, and the length of the verdict's window.
        totals: Figures of the view.
    """
    code = totals.verdict_reason
    if code == "tap_hole":
        return _interrupted(snapshot, totals)
    if isinstance(totals, ChannelTotals) and totals.evidence is not None:
        found = _found(snapshot, totals, totals.evidence)
        if found:
            return found
    return words.reason(code, snapshot.observer.verdict_window_ms)


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


def _found(snapshot: Snapshot, totals: ChannelTotals, evidence: Evidence) -> str:
    """Return the reason of a channel with the counts behind it; empty without them."""
    settings = snapshot.observer
    excused = excuse_of(totals.observers, snapshot, settings) or _nothing_excused
    lately = f"in {words.lately(settings.verdict_window_ms)}"
    failing = totals.verdict is Verdict.FAILING
    match totals.verdict_reason:
        case "lost" if count := count_without(evidence.lost, excused):
            senders = "its sender" if count == 1 else "their senders"
            message = words.counted(count, "message")
            return f"{message} reached nobody but {senders} {lately}"
        case "undelivered" if count := count_without(evidence.undelivered, excused):
            whole = f"{words.number(evidence.pairs)} deliveries"
            limit = settings.undelivered_percent if failing else None
            share = _share(count, whole, limit) if evidence.pairs >= count else ""
            return f"{_undelivered(evidence, excused, count)} {lately}{share}"
        case "unacknowledged" if count := count_without(
            evidence.unacknowledged, excused
        ):
            verb = "was" if count == 1 else "were"
            message = words.counted(count, "message")
            whole = words.number(evidence.messages)
            limit = settings.unacknowledged_percent if failing else None
            share = _share(count, whole, limit)
            return f"{message} {verb} not acknowledged in time {lately}{share}"
        case "recovering" if count_without(evidence.gaps, excused):
            verb = "is" if totals.gaps_open == 1 else "are"
            message = words.counted(totals.gaps_open, "message")
            return f"{message} {verb} missing now, and may still come"
    return ""


def _undelivered(evidence: Evidence, excused: Excused, count: int) -> str:
    """Return to whom messages were not delivered, first to whom most were not.

    Args:
        evidence: Has the participants.
        excused: Whether evidence does not count.
        count: Number of deliveries in all.
    """
    counts = {
        name: number
        for name, found in evidence.lacking
        if (number := count_without(found, excused))
    }
    if not counts:
        return f"{words.counted(count, 'message')} did not reach a participant"
    worst = max(counts, key=lambda name: counts[name])
    to_worst = words.counted(counts[worst], "message")
    text = f"{to_worst} did not reach {words.short(worst)}"
    others = len(counts) - 1 + evidence.lacking_others
    if not others or count <= counts[worst]:
        return text
    rest = words.number(count - counts[worst])
    return f"{text} and {rest} did not reach {words.counted(others, 'other')}"


def _share(part: int, whole: str, limit_percent: int | None) -> str:
    """Return what a count is a part of, and the limit above which it fails."""
    limit = f"; limit {limit_percent} %" if limit_percent is not None else ""
    return f" ({words.number(part)} of {whole}{limit})"


def _nothing_excused(since_ms: int, found_ms: int) -> bool:
    return False
