"""Likely causes of the verdict on a group (docs/figures.md, 12)."""

from __future__ import annotations

from typing import Any

import pytest

from sds_core.observer.causes import Surroundings
from sds_core.observer.mvds.kind import causes_of
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.mvds.window import Window
from sds_core.observer.verdict import Verdict

CLOCK_MS = 1_750_000_000_000


def group(unacknowledged: int = 5, **changes: Any) -> GroupTotals:
    """A failing group, in which nobody has ever acknowledged anything."""
    known: dict[str, Any] = {
        "verdict": Verdict.FAILING,
        "addressed": 6,
        "window": Window(unacknowledged={CLOCK_MS: unacknowledged}),
    }
    return GroupTotals(**(known | changes))


def kinds(totals: GroupTotals, **around: Any) -> list[str]:
    """Kinds of the group's causes."""
    return [one.kind for one in causes_of(totals, Surroundings(CLOCK_MS, **around))]


def test_group_in_which_nobody_acknowledges_says_so() -> None:
    """Five messages are enough."""
    assert kinds(group()) == ["no_acknowledgements"]


@pytest.mark.parametrize(
    "totals", [group(4), group(records_ack=1), group(verdict=Verdict.BLIND)]
)
def test_group_with_few_failures_or_any_acknowledgement_says_nothing(
    totals: GroupTotals,
) -> None:
    """Nor does a blind one."""
    assert kinds(totals) == []


def test_group_whose_taps_had_holes_says_nothing() -> None:
    """The acknowledgements may be what they missed."""
    assert kinds(group(), excused=lambda since_ms, found_ms: False) == []
