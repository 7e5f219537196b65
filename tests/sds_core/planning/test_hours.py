"""Rows of a history become hours: growth, gauges, and what allows no forecast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sds_core.planning.errors import ClockJumped, Silent, TooLittleHistory
from sds_core.planning.hours import (
    DAY_MS,
    HOUR_MS,
    Hours,
    by_day,
    hour_rows,
    hours_of,
    last_hour_ms,
)
from tests.support.planning.month import MONDAY_MS

Row = dict[str, Any]


def rows_of(hours: range, step: int = 10) -> list[Row]:
    """A row in the last minute of each hour, in which `n` has grown by `step`."""
    return [
        {"minute": MONDAY_MS + hour * HOUR_MS + 59 * 60_000, "n": step * (hour + 1)}
        for hour in hours
    ]


def read(rows: list[Row], end: int = 20 * 24, now: int | None = None) -> Hours:
    """Hours up to `end`, an hour, read at `now`."""
    return hours_of(
        rows,
        ["n"],
        ["level"],
        end_ms=MONDAY_MS + end * HOUR_MS,
        now_ms=MONDAY_MS + (end if now is None else now) * HOUR_MS,
    )


def test_growth_is_that_of_the_hour() -> None:
    """The first hour has no row before it, so it is left out."""
    found = read(rows_of(range(20 * 24))).grown["n"]
    assert found.tolist() == [10.0] * (20 * 24 - 1)
    assert by_day(found).shape == (19, 24)


def test_hour_without_a_row_has_no_growth() -> None:
    """A minute in which nothing changed has no row."""
    rows = [row for row in rows_of(range(20 * 24)) if row["minute"] // HOUR_MS % 2]
    found = read(rows).grown["n"]
    assert set(found.tolist()) == {0.0, 20.0}


def test_new_checkpoint_counts_from_zero() -> None:
    """A smaller value is growth from zero, not negative growth."""
    rows = rows_of(range(20 * 24))
    for row in rows[200:]:
        row["n"] -= 1_995
    found = read(rows).grown["n"]
    assert found.min() == 10.0 - 0
    assert found[199] == 15.0


def test_unfinished_hour_is_left_out() -> None:
    """The end is that of the last whole hour of the newest view."""
    newest_ms = MONDAY_MS + 5 * HOUR_MS + 20 * 60_000
    assert last_hour_ms(newest_ms) == MONDAY_MS + 5 * HOUR_MS
    assert last_hour_ms(newest_ms + 39 * 60_000) == MONDAY_MS + 6 * HOUR_MS
    rows = [*rows_of(range(20 * 24)), {"minute": MONDAY_MS + 480 * HOUR_MS, "n": 9_999}]
    assert read(rows).grown["n"].max() == 10.0


def test_gauge_holds_until_the_next_row() -> None:
    """Also before the first hour that counts."""
    rows = [row | {"level": 7} for row in rows_of(range(0, 20 * 24, 5))]
    rows[50]["level"] = 8
    found = read(rows).gauges["level"]
    assert found[248:256].tolist() == [7.0, 8.0, 8.0, 8.0, 8.0, 8.0, 7.0, 7.0]
    assert found[0] == 7.0


def test_missing_gauge_is_unknown_and_not_zero() -> None:
    """The known value before it holds, and at the begin the first known value."""
    rows = [row | {"level": 7} for row in rows_of(range(20 * 24))]
    for hour in (0, 1, 2, 100, 101, 479):
        rows[hour]["level"] = None
    rows[99]["level"], rows[102]["level"] = 8, 0
    del rows[101]["level"]
    rows.append({"minute": MONDAY_MS + 480 * HOUR_MS, "level": 9})
    found = read(rows).gauges["level"]
    assert found[:3].tolist() == [7.0, 7.0, 7.0]
    assert found[97:103].tolist() == [7.0, 8.0, 8.0, 8.0, 0.0, 7.0]
    assert found[-1] == 7.0


def test_gauge_that_no_row_has_is_zero() -> None:
    """Nothing is known, and the unfinished hour does not count."""
    rows = [*rows_of(range(20 * 24)), {"minute": MONDAY_MS + 480 * HOUR_MS, "level": 9}]
    assert not read(rows).gauges["level"].any()


def test_empty_history_is_too_little() -> None:
    """No row, no day."""
    with pytest.raises(
        TooLittleHistory, match=r"^0 whole days of history, at least 14"
    ):
        read([])


def test_one_message_is_too_little() -> None:
    """One row says nothing about a day."""
    with pytest.raises(TooLittleHistory, match=r"^0 whole days"):
        read(rows_of(range(479, 480)))


def test_thirteen_days_are_too_little_and_fourteen_are_enough() -> None:
    """Two of each day of the week, and the first hour, whose growth is not known."""
    with pytest.raises(TooLittleHistory, match=r"^13 whole days"):
        read(rows_of(range(480 - 14 * 24, 480)))
    assert len(by_day(read(rows_of(range(479 - 14 * 24, 480))).grown["n"])) == 14


def test_silent_channel_has_no_forecast() -> None:
    """Nothing for more than three days: it says since when."""
    with pytest.raises(Silent, match=r"^silent since 2026-08-25 00:00:00"):
        read(rows_of(range(15 * 24)))


def test_weekend_is_no_silence() -> None:
    """A channel of a company, from Monday to Friday."""
    rows = [row for row in rows_of(range(21 * 24)) if row["minute"] // DAY_MS % 7 != 2]
    assert len(by_day(read(rows, end=21 * 24).grown["n"])) == 20


def test_only_what_follows_a_silence_counts() -> None:
    """Before it, the channel was another one."""
    rows = rows_of(range(24)) + rows_of(range(5 * 24, 20 * 24))
    assert len(by_day(read(rows).grown["n"])) == 14
    late = rows_of(range(24)) + rows_of(range(10 * 24, 20 * 24))
    with pytest.raises(TooLittleHistory, match=r"since the silence that ended at 2026"):
        read(late)


def test_row_of_the_future_is_a_clock_that_jumped() -> None:
    """Its date is given."""
    rows = rows_of(range(20 * 24)) + rows_of(range(4_000, 4_001))
    with pytest.raises(
        ClockJumped, match=r"2027-01-23 16:59:00 UTC, .*a clock jumped$"
    ):
        read(rows)


def test_row_of_long_ago_counts_as_before_a_silence() -> None:
    """A clock that stood at 1970."""
    rows = [{"minute": 60_000, "n": 1}, *rows_of(range(20 * 24))]
    assert len(by_day(read(rows).grown["n"])) == 19


def test_minutes_become_a_row_for_each_hour() -> None:
    """Counters are those at its end, gauges the greatest in it."""
    rows = [
        {"minute": MONDAY_MS + n * 60_000, "n": n, "level": level}
        for n, level in ((0, 3), (10, 9), (59, 2), (60, None), (70, 4))
    ]
    found = hour_rows(rows, ["level"])
    assert [(row["n"], row["level"]) for row in found] == [(59, 9), (70, 4)]
    assert np.diff([row["minute"] for row in found])[0] == 11 * 60_000
