"""Grids of planned channels, and the summary of their runs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sds_core.planning.channel import ChannelPlan
from sds_core.planning.experiment import Outcome
from sds_core.planning.grid import MAX_RUNS, Grid
from sds_core.reading import TableError

BASE = {"participants": 4, "messages_per_day": 1_000}


def grid_of(lists: object, **others: Any) -> Grid:
    """A grid with the usual base."""
    return Grid.from_mapping({"base": BASE, "grid": lists, "seeds": 2} | others)


def test_every_combination_of_values_runs_with_every_seed() -> None:
    """Run n has the plan n // seeds."""
    grid = grid_of({"loss": [0.0, 0.1], "causal_history": [2, 20]})
    assert grid.keys == ("loss", "causal_history")
    runs = list(grid.runs())
    assert [run.number for run in runs] == list(range(8))
    assert [run.seed for run in runs] == [1, 2] * 4
    assert [(run.plan.loss, run.plan.causal_history) for run in runs[::2]] == [
        (0.0, 2), (0.0, 20), (0.1, 2), (0.1, 20)
    ]  # fmt: skip


def test_several_tables_add_up_and_an_equal_plan_runs_once() -> None:
    """A setting that the base lacks may stand in the lists."""
    grid = Grid.from_mapping(
        {
            "base": {"messages_per_day": 1_000},
            "grid": [
                {"participants": [4], "loss": [0, 0.1]},
                {"participants": [4, 5], "loss": [0.0]},
            ],
            "seeds": 1,
        }
    )
    assert grid.cells == tuple(
        ChannelPlan(participants=participants, messages_per_day=1_000, loss=loss)
        for participants, loss in ((4, 0.0), (4, 0.1), (5, 0.0))
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"grid": {"losss": [0.1]}}, "has no key 'losss' (did you mean 'loss'?)"),
        ({"grid": {"loss": [0.1, 1.5]}}, "loss is 1.5: allowed is a number from 0 to"),
        ({"grid": {"loss": []}}, "grid.loss is an empty list: give at least one value"),
        ({"grid": []}, "grid is []"),
        ({"grid": {"loss": 0.1}}, "grid"),
        ({"grid": {"loss": [math.nan]}}, "loss"),
        ({"base": {"participants": 2}}, "lacks the key 'messages_per_day'"),
        ({"base": BASE | {"participants": -1}}, "participants is -1: allowed is"),
        ({"seeds": 0}, "seeds is 0: allowed is a whole number from 1"),
        ({"target_s": math.nan}, "target_s is nan"),
        ({"target": 5}, "has no key 'target' (did you mean 'target_s'?)"),
        (
            {"grid": {"loss": [n / 1_000 for n in range(1_000)]}, "seeds": 1_000},
            f"grid needs 1,000,000 runs, but at most {MAX_RUNS:,} are allowed: give "
            "fewer values or seeds",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_value_and_remedy(
    changes: dict[str, Any], told: str
) -> None:
    """In one line."""
    mapping = {"base": BASE, "grid": {"loss": [0.1]}, "seeds": 1} | changes
    with pytest.raises(TableError) as refused:
        Grid.from_mapping(mapping)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_plans_of_a_huge_grid_are_not_made() -> None:
    """Ten lists of a thousand values are refused at once."""
    lists = {name: list(range(1_000)) for name in ChannelPlan.__struct_fields__[:10]}
    with pytest.raises(TableError, match="runs, but at most 10,000 are allowed"):
        grid_of(lists)


def test_summary_has_the_mean_of_the_finished_runs_with_students_interval() -> None:
    """Of 1 and 3: 2, with t = 12.706 for one degree of freedom."""
    grid = grid_of({"loss": [0.0, 0.1, 0.2]})
    nothing = Outcome(*[math.nan] * len(Outcome._fields))
    outcomes = {
        number: nothing._replace(eventual=value)
        for number, value in {0: 1.0, 1: 3.0, 2: 5.0}.items()
    }
    first, second, third = grid.summary(outcomes, ["eventual", "first_pass"])
    assert first.values == {"loss": 0.0}
    assert first.runs == 2
    assert first.figures["eventual"].value == 2.0
    assert first.figures["eventual"].high == pytest.approx(2 + 12.706, abs=1e-3)
    assert math.isnan(first.figures["first_pass"].value)
    assert (second.runs, second.figures["eventual"].value) == (1, 5.0)
    assert third.runs == 0
    assert math.isnan(third.figures["eventual"].value)
