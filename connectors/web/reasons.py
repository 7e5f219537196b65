"""Why a view has its verdict, in one sentence with figures.

Each sentence names the window of its verdict, because other figures of a page cover an
hour or all time.
"""

from __future__ import annotations

from collections.abc import Sequence

from connectors.web import words
from connectors.web.extras import extras_of
from sds_core.observer.blindness import blind_until_ms, causes_of
from sds_core.observer.kinds import AnyKind
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.view_totals import ViewTotals


def reason_of(snapshot: Snapshot, totals: ViewTotals, kind: AnyKind) -> str:
    """Return the reason of a view's verdict in words."""
    code = totals.verdict_reason
    if code == "tap_hole":
        return _interrupted(snapshot, totals)
    counts = extras_of(kind).reason(snapshot, totals)
    return counts or words.reason(code, snapshot.observer.verdict_window_ms)


def likely_causes(
    snapshot: Snapshot, totals: ViewTotals, kind: AnyKind
) -> Sequence[str]:
    """Return a sentence for each likely cause of a view's verdict."""
    return [one.sentence(words.short) for one in causes_of(snapshot, totals, kind)]


def causes_in_brief(snapshot: Snapshot, totals: ViewTotals, kind: AnyKind) -> str:
    """Return the likely causes in a few words, for a table row; empty if unknown."""
    found = [one.in_brief(words.short) for one in causes_of(snapshot, totals, kind)]
    return f"Likely cause: {'; '.join(found)}" if found else ""


def _interrupted(snapshot: Snapshot, totals: ViewTotals) -> str:
    until_ms = blind_until_ms(totals.observers, snapshot, snapshot.observer)
    if until_ms is None:
        return "the taps are silent"
    again = words.since(words.next_minute_ms(until_ms), snapshot.clock_ms)
    return f"the taps were interrupted; the next verdict is at {again}"
