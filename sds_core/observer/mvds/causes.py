"""Likely causes of the verdict on a group (docs/figures.md, 12)."""

from __future__ import annotations

from collections.abc import Sequence

from sds_core.observer.causes import Cause, Surroundings
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.verdict import Verdict
from sds_core.text import counted

LEAST = 5
"""Unacknowledged pairs of a message and a receiver, at least."""


def causes_of(totals: GroupTotals, around: Surroundings) -> Sequence[Cause]:
    """Return the likely causes of a bad verdict."""
    unacknowledged = sum(totals.window.unacknowledged.values())
    if (
        unacknowledged < LEAST
        or totals.records_ack
        or totals.verdict is Verdict.BLIND
        # The taps may have missed the acknowledgements.
        or around.excused is not None
    ):
        return ()
    return (
        Cause(
            "no_acknowledgements",
            "no node of the group acknowledges: not one acknowledgement since the "
            f"first record, of {counted(totals.addressed, 'addressed message')}",
            "nobody acknowledges",
            (),
            {"unacknowledged": unacknowledged, "addressed": totals.addressed},
        ),
    )
