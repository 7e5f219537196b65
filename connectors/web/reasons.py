"""Explains in one sentence why a view has its verdict.

If the sentence has figures of the verdict's window, it names the window, because other
figures on the page cover the last hour or all time.
"""

from __future__ import annotations

from connectors.web import words
from connectors.web.extras import extras_of
from sds_core.observer.blindness import blind_until_ms
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


def _interrupted(snapshot: Snapshot, totals: ViewTotals) -> str:
    until_ms = blind_until_ms(totals.observers, snapshot, snapshot.observer)
    if until_ms is None:
        return "the taps are silent"
    again = words.since(words.next_minute_ms(until_ms), snapshot.clock_ms)
    return f"the taps were interrupted; the next verdict is at {again}"
