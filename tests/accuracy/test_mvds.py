"""What the monitor finds in simulated traffic of MVDS is what happened in it."""

from __future__ import annotations

import pytest

from tests.support.accuracy.mvds import MVDS_NAMES, mvds_result_of

pytestmark = pytest.mark.slow

SEEDS = (1, 2, 3, 4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MVDS_NAMES)
def test_every_figure_of_mvds_equals_the_truth(name: str, seed: int) -> None:
    """In total and for each group; more messages than none are followed."""
    result = mvds_result_of(name, seed)
    assert result.differing == []
    assert result.messages > 0
    assert result.addressed > 0


@pytest.mark.parametrize("size", [1, 7, None])
def test_figures_of_mvds_do_not_depend_on_batches(size: int | None) -> None:
    """Record by record, in small batches, and in one."""
    assert mvds_result_of("mvds-interactive", 1, size) == mvds_result_of(
        "mvds-interactive", 1
    )


def test_nodes_that_are_away_have_unacknowledged_or_late_deliveries() -> None:
    """Agreement says little about outcomes that never occur."""
    results = [mvds_result_of("mvds-offline-90", seed) for seed in SEEDS]
    assert any(one.in_time < one.addressed for one in results)
    assert any(one.deliveries for one in results)
