"""Why a view has its verdict, in words, with what only the taps know."""

from __future__ import annotations

from connectors.web import words
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.view_totals import ViewTotals


def reason_of(snapshot: Snapshot, totals: ViewTotals) -> str:
    """Return the reason of a view's verdict; see `words.reason`.

    If the taps were interrupted, it says when a verdict is possible again.
    """
    text = words.reason(totals.verdict_reason)
    if totals.verdict_reason != "tap_hole":
        return text
    taps = [snapshot.taps[one] for one in totals.observers if one in snapshot.taps]
    # A tap that is silent now has no end yet.
    ends_ms = [
        tap.last_hole_ms + DEFAULTS.verdict_window_ms
        for tap in taps
        if snapshot.clock_ms - tap.last_seen_ms <= DEFAULTS.tap_hole_ms
        and tap.last_hole_ms is not None
    ]
    if not ends_ms:
        return "the taps are silent"
    end_ms = words.next_minute_ms(min(ends_ms))
    return f"{text}; verdict again at {words.since(end_ms, snapshot.clock_ms)}"
