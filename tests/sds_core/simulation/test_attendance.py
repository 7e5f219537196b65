"""When participants are present."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

import pytest

from sds_core.reading import TableError
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.streams import Streams
from sds_core.simulation.traffic import Attendance


def changes(mapping: dict[str, Any], **churn: Any) -> list[list[tuple[int, bool]]]:
    """Return the first hundred changes of a hundred participants."""
    mapping["churn"] = churn
    mapping["participants"] = 100
    attendance = Attendance(Scenario.from_mapping(mapping), Streams(1))
    return [list(islice(attendance.changes(index), 100)) for index in range(100)]


def test_without_churn_all_come_at_the_start_and_stay(mapping: dict[str, Any]) -> None:
    """The default."""
    assert changes(mapping) == [[(0, True)]] * 100


def test_shares_join_late_and_leave_for_good(mapping: dict[str, Any]) -> None:
    """Exact numbers, within the duration, and nobody leaves before joining."""
    plans = changes(mapping, joining_share=0.3, leaving_share=0.4)
    assert sum(plan[0][0] > 0 for plan in plans) == 30
    assert sum(len(plan) == 2 for plan in plans) == 40
    for plan in plans:
        assert [present for _, present in plan] == [True, False][: len(plan)]
        assert 0 <= plan[0][0] <= plan[-1][0] < 60_000


def test_absences_alternate_with_the_means_of_the_scenario(
    mapping: dict[str, Any],
) -> None:
    """Half of them; the mean of 2,450 exponential times is within 10 %."""
    plans = changes(
        mapping, absences={"share": 0.5, "mean_present_s": 20, "mean_away_s": 5}
    )
    wandering = [plan for plan in plans if len(plan) > 1]
    assert len(wandering) == 50
    lengths: dict[bool, list[int]] = {True: [], False: []}
    for plan in wandering:
        for (since_ms, present), (until_ms, after) in pairwise(plan):
            assert present is not after
            lengths[present].append(until_ms - since_ms)
    for present, mean_ms in ((True, 20_000), (False, 5_000)):
        mean = sum(lengths[present]) / len(lengths[present])
        assert abs(mean - mean_ms) < mean_ms / 10


def test_absences_keep_to_their_limits(mapping: dict[str, Any]) -> None:
    """A time that is drawn outside them becomes the limit."""
    plans = changes(
        mapping,
        absences={
            "share": 1,
            "mean_present_s": 20,
            "mean_away_s": 10,
            "least_away_s": 5,
            "most_away_s": 12,
        },
    )
    away_ms = [
        until_ms - since_ms
        for plan in plans
        for (since_ms, present), (until_ms, _) in pairwise(plan)
        if not present
    ]
    # Times are rounded down to the millisecond.
    assert 4_999 <= min(away_ms) <= 5_000
    assert 12_000 <= max(away_ms) <= 12_001


def test_participant_that_leaves_for_good_does_not_return(
    mapping: dict[str, Any],
) -> None:
    """Its absences end when it leaves."""
    plans = changes(
        mapping,
        leaving_share=1,
        absences={"share": 1, "mean_present_s": 5, "mean_away_s": 5},
    )
    for plan in plans:
        assert plan[-1][1] is False
        assert plan[-1][0] < 60_000


def test_regular_absences_have_equal_lengths_and_a_beginning_of_their_own(
    mapping: dict[str, Any],
) -> None:
    """A network that fails for 150 s every seven minutes, not for all at once."""
    plans = changes(
        mapping,
        absences={
            "share": 1,
            "lengths": "regular",
            "mean_present_s": 270,
            "mean_away_s": 150,
        },
    )
    lengths = {
        (present, until_ms - since_ms)
        for plan in plans
        for (since_ms, present), (until_ms, _) in pairwise(plan[1:])
    }
    # Times are rounded down to the millisecond.
    assert {(is_on, round(ms, -2)) for is_on, ms in lengths} == {
        (True, 270_000),
        (False, 150_000),
    }
    first = [plan[1][0] for plan in plans]
    assert min(first) < 30_000 < 240_000 < max(first) < 270_000


def test_several_patterns_have_distinct_participants(mapping: dict[str, Any]) -> None:
    """Each its own share; the first is drawn as if it were alone."""
    one = {"share": 0.3, "mean_present_s": 20, "mean_away_s": 5}
    two = {"share": 0.2, "mean_present_s": 1, "mean_away_s": 1, "state": "lost"}
    plans = changes(mapping, absences=[one, two])
    alone = changes(mapping, absences=one)
    assert sum(len(plan) > 1 for plan in plans) == 50
    assert all(
        plan == other
        for plan, other in zip(plans, alone, strict=True)
        if len(other) > 1
    )


def test_shares_of_patterns_beyond_all_participants_are_refused(
    mapping: dict[str, Any],
) -> None:
    """The error has the sum."""
    pattern = {"share": 0.6, "mean_present_s": 20, "mean_away_s": 5}
    with pytest.raises(
        TableError, match=r"shares whose sum is 1\.2, but the maximum is 1"
    ):
        changes(mapping, absences=[pattern, pattern])
