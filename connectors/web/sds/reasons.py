"""Explains why an SDS channel has its verdict, with the counts that caused it."""

from __future__ import annotations

from connectors.web import words
from sds_core.observer.blindness import excuse_of
from sds_core.observer.sds.evidence import Evidence, count_without
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import Excused


def reason_of(snapshot: Snapshot, totals: ChannelTotals) -> str:
    """Return a verdict's reason with its counts; empty if no count explains it."""
    if totals.evidence is None:
        return ""
    evidence = totals.evidence
    settings = snapshot.observer
    excused = excuse_of(totals.observers, snapshot, settings) or (lambda *_: False)
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
            message = words.counted(count, "message")
            whole = words.number(evidence.messages)
            limit = settings.unacknowledged_percent if failing else None
            share = _share(count, whole, limit)
            return f"{message} missed the acknowledgement deadline {lately}{share}"
        case "recovering" if count_without(evidence.gaps, excused):
            verb = "is" if totals.gaps_open == 1 else "are"
            message = words.counted(totals.gaps_open, "message")
            return f"{message} {verb} missing now, but may still arrive"
    return ""


def _undelivered(evidence: Evidence, excused: Excused, count: int) -> str:
    counts = {
        name: number
        for name, found in evidence.lacking
        if (number := count_without(found, excused))
    }
    if not counts:
        what = "delivery was" if count == 1 else "deliveries were"
        return f"{words.number(count)} {what} lost"
    worst = max(counts, key=lambda name: counts[name])
    to_worst = words.counted(counts[worst], "message")
    text = f"{to_worst} did not reach {words.short(worst)}"
    others = len(counts) - 1 + evidence.lacking_others
    if not others or count <= counts[worst]:
        return text
    rest = words.number(count - counts[worst])
    receivers = words.counted(others, "other participant")
    return f"{text}, and {rest} did not reach {receivers}"


def _share(part: int, whole: str, limit_percent: int | None) -> str:
    limit = f"; limit {limit_percent} %" if limit_percent is not None else ""
    return f" ({words.number(part)} of {whole}{limit})"
