"""Finds the likely causes of the verdicts of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from sds_core.observer.blindness import excuse_of, holes_of
from sds_core.observer.causes import Cause, Surroundings
from sds_core.observer.kinds import AnyKind
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import ViewTotals

_BAD = (Verdict.FAILING, Verdict.DEGRADED, Verdict.BLIND)


def causes_of(snapshot: Snapshot, totals: ViewTotals, kind: AnyKind) -> Sequence[Cause]:
    """Return the likely causes of a view's verdict, the most telling first.

    Args:
        snapshot: Has the taps and the clock.
        totals: Totals of the view, with the verdict that its taps allow.
        kind: Its kind.

    Returns:
        Nothing if the verdict is not bad, or if the evidence shows no cause.
    """
    if totals.verdict not in _BAD:
        return ()
    settings = snapshot.observer
    around = Surroundings(
        snapshot.clock_ms,
        {
            name: holes_of(snapshot.taps[name], snapshot.clock_ms, settings)
            for name in totals.observers
            if name in snapshot.taps
        },
        excuse_of(totals.observers, snapshot, settings),
        settings,
    )
    return kind.causes(totals, around)
