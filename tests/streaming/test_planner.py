"""Forecasts of a running monitor: a real worker process, a real history."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from connectors.history.query import hourly_rows
from connectors.history.schema import Row, tables_of
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.planning.fleet import HourlyRows
from sds_core.planning.hours import DAY_MS, HOUR_MS
from sds_core.planning.plan import Plan
from sds_core.text import utc_time
from streaming import plan_worker, planner
from streaming.plan_worker import FIT_DAYS, Order, compute, read_history
from streaming.planner import Bounds, Planner
from streaming.settings import HistorySettings
from tests.support.planning.month import Month
from tests.support.planning.stored import store
from tests.support.snapshots import snapshot_of
from tests.support.waiting import wait_for

MONTH = Month(days=30, messages_a_day=2_800.0)
END_MS = MONTH.begin_ms + 30 * DAY_MS
AT_ONCE = Bounds(first_s=0.0)
_LONG_S = 280.0
"""A worker has the lowest priority: on a busy machine it takes minutes."""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> HistorySettings:
    """A month of `town`, of which `village` was silent for the last ten days."""
    directory = tmp_path_factory.mktemp("planner") / "history"
    return HistorySettings(
        store(directory, {"town": MONTH.rows(), "village": MONTH.rows(20)})
    )


def snapshot(*names: str, primed: bool = True) -> Snapshot:
    """Figures of some channels, the first of which has a label."""
    channels = {name: ChannelTotals() for name in names}
    return snapshot_of(primed=primed, channels=channels, labels=names[:1])


def planned(history: HistorySettings | None, bounds: Bounds = AT_ONCE) -> Planner:
    """A planner of three channels, at the end of the month."""
    current = snapshot("town", "new", "village")
    return Planner(history, lambda: current, lambda: END_MS, bounds)


def computed(plans: Planner) -> Plan:
    """The forecasts once they are there, or a problem."""
    wait_for(lambda: plans()["sds"] != Plan(), _LONG_S)
    return plans()["sds"]


def test_worker_forecasts_the_history(history: HistorySettings) -> None:
    """Views beyond the limit are counted; those with a label come first."""
    with planned(history, Bounds(first_s=0.0, views=2, seconds=_LONG_S)) as plans:
        plan = computed(plans)
    assert not plan.problem
    assert plan.computed_ms == END_MS
    assert list(plan.views) == ["town"]
    assert plan.without == {
        "new": "0 whole days of history, at least 14 are needed",
    }
    assert plan.hidden == 1
    town = plan.views["town"]
    assert (town.history_days, town.begin_ms) == (29, END_MS)
    assert len(town.figures["bytes"].before) == 28
    truth = MONTH.bytes_by_day[-1]
    assert town.figures["bytes"].before[-1] == pytest.approx(truth)
    limits = {limit.name: limit for limit in town.limits}
    assert limits["filter_ids"].earliest_ms is not None
    assert plan.total is not None


def test_nothing_is_begun_after_its_time(history: HistorySettings) -> None:
    """Such views count as those beyond the limit of their number."""
    order = Order(str(history.directory), "sds", ["town", "new"], 3, END_MS, 100, -1.0)
    plan = compute(order)
    assert (plan.views, plan.without, plan.hidden) == ({}, {}, 5)


def test_old_history_gives_no_forecast(history: HistorySettings) -> None:
    """A monitor that catches up by days would say that limits are reached."""
    now_ms = END_MS + 4 * DAY_MS
    plan = compute(Order(str(history.directory), "sds", ["town"], 0, now_ms, 100, 60))
    assert plan.views == {}
    assert plan.without == {"town": f"silent since {utc_time(END_MS)}"}


def test_views_of_several_queries_are_forecast(
    history: HistorySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker reads some views at a time."""
    names, tables = ["town", "new", "village"], tables_of(kinds_of(PROTOCOLS).of("sds"))

    def read() -> tuple[HourlyRows, int]:
        return read_history(history.directory, tables, names, FIT_DAYS, END_MS)

    together = read()
    assert sorted(together[0]) == ["town", "village"]
    monkeypatch.setattr(plan_worker, "_VIEWS_AT_ONCE", 1)
    assert read() == together


def test_hour_that_ends_while_the_history_is_read_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The views that were read first lack the rest of it."""
    rows = MONTH.rows()
    last_hour = [row for row in rows if row["minute"] >= END_MS - HOUR_MS]
    directory = store(tmp_path, {"town": rows[: -len(last_hour)]})

    def read_slowly(*given: Any) -> dict[str, list[Row]]:
        found = hourly_rows(*given)
        store(directory, {"town": last_hour})
        return found

    monkeypatch.setattr(plan_worker, "hourly_rows", read_slowly)
    tables = tables_of(kinds_of(PROTOCOLS).of("sds"))
    _, end_ms = read_history(directory, tables, ["town"], FIT_DAYS, END_MS)
    assert end_ms == END_MS - HOUR_MS


def test_end_of_the_monitor_ends_the_worker(history: HistorySettings) -> None:
    """At once, although it would compute for seconds; it waits and ends first."""
    with planned(history):
        (worker,) = wait_for(nicest_children, _LONG_S)
        score = Path(f"/proc/{worker.pid}/oom_score_adj")
        wait_for(lambda: not score.exists() or int(score.read_text()) == 1_000, _LONG_S)
        begun_s = time.monotonic()
    assert time.monotonic() - begun_s < 5
    assert not worker.is_running()


def nicest_children() -> list[psutil.Process]:
    """The children with the lowest priority; other children end at any time."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if child.nice() == 19:
                found.append(child)
    return found


def test_missing_history_is_a_problem(tmp_path: Path) -> None:
    """The forecasts of before stay."""
    with planned(HistorySettings(tmp_path)) as plans:
        plan = computed(plans)
    assert plan.problem.startswith("no history was found")
    with planned(None) as plans:
        assert plans()["sds"].problem.startswith("this job stores no history")


def test_missing_library_is_a_problem(
    history: HistorySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what to install; no process is started."""
    monkeypatch.setattr(planner, "find_spec", lambda name: None)
    with planned(history) as plans:
        assert computed(plans).problem == (
            "plans need statsmodels: pip install 'sds-monitor[plan]'"
        )


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import time; time.sleep(60)", "took too long"),
        ("import sys; sys.exit('out of\\x1b[2J luck')", r"failed: out of\x1b[2J luck"),
    ],
)
def test_failed_worker_is_a_problem(
    history: HistorySettings,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    expected: str,
) -> None:
    """One that hangs is ended; the last line of one that fails is shown safely."""
    monkeypatch.setattr(planner, "_COMMAND", [sys.executable, "-c", program])
    monkeypatch.setattr(planner, "_GRACE_S", 1.0)
    with planned(history, Bounds(first_s=0.0, seconds=0.0)) as plans:
        assert expected in computed(plans).problem


def test_worker_that_cannot_start_is_a_problem(
    history: HistorySettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The thread lives, and starts the next one."""
    monkeypatch.setattr(planner, "_COMMAND", [str(tmp_path / "none")])
    with planned(history, Bounds(first_s=0.0, every_s=0.0)) as plans:
        assert "No such file" in computed(plans).problem
        monkeypatch.setattr(planner, "_COMMAND", [sys.executable, "-c", ""])
        wait_for(lambda: plans()["sds"].problem.endswith("failed: no answer"), _LONG_S)


def test_nothing_is_computed_soon_after_a_start(history: HistorySettings) -> None:
    """The job has its work first."""
    with planned(history, Bounds()) as plans:
        time.sleep(1.2)
        assert plans()["sds"] == Plan()


def test_unprimed_figures_are_not_forecast(history: HistorySettings) -> None:
    """The names of the channels are not known yet."""
    calls: list[Callable[[], Snapshot]] = []

    def current() -> Snapshot:
        calls.append(current)
        return replace(snapshot("town"), primed=False)

    with Planner(history, current, lambda: END_MS, AT_ONCE) as plans:
        wait_for(lambda: len(calls) > 1, _LONG_S)
        assert plans()["sds"] == Plan()
