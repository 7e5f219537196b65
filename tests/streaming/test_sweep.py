"""Runs of a sweep that end together, without Spark."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.sweep_results import Finished
from sds_core.planning.grid import Grid, Run
from streaming import sweep
from streaming.failure import JobFailed
from tests.support.planning.sweeps import GRID


@pytest.mark.parametrize("failing", range(8))
def test_failed_run_loses_none_that_ended_with_it(
    monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """The caller stores them first, so that only the others are repeated."""

    def job(_: Any, run: Run) -> Finished:
        if run.number == failing:
            raise JobFailed("run failed")
        return Finished(run.number, 1.0, [])

    monkeypatch.setattr(sweep, "has_executors", lambda _: False)
    monkeypatch.setattr(sweep, "_job", job)
    monkeypatch.setattr(sweep, "wait", lambda futures, *_: wait(futures))
    spark: Any = SimpleNamespace(sparkContext=None)
    runs = list(Grid.from_mapping(GRID).runs())
    found: list[int] = []
    with pytest.raises(JobFailed):
        found.extend(one.number for one in sweep.sweep(spark, runs, threading.Event()))
    assert sorted(found) == [run.number for run in runs if run.number != failing]
