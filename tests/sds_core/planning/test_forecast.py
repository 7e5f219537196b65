"""Forecasts against simulated months whose next week is known."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from sds_core.observer.mvds.figures import GROUP_FIGURES
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.planning.errors import ClockJumped, ModelMissing, NotFitted
from sds_core.planning.filters import designed_ids
from sds_core.planning.fleet import Fleet, forecast_fleet
from sds_core.planning.forecast import Forecast, ForecastSettings
from sds_core.planning.hours import DAY_MS, HOUR_MS
from sds_core.planning.limits import (
    Reached,
    reached,
    reached_by_level,
    reached_by_sum,
)
from sds_core.planning.measures import FILTER, Measures, measures_of
from sds_core.planning.model import PATHS, draw_paths
from tests.support.planning.backtest import HISTORY_DAYS, backtest, forecast_of
from tests.support.planning.month import MINUTES_A_DAY, Month, bits_of

SETTINGS = ForecastSettings()
MEASURES = measures_of(CHANNEL_FIGURES)
MONTH = Month(messages_a_day=2_800.0, participants=5)
"""Its filter has 103,972 ids, the designed number, in the week after 30 days."""
END_MS = MONTH.begin_ms + HISTORY_DAYS * DAY_MS


@pytest.fixture(scope="module")
def found() -> Forecast:
    """The forecast of the month after 30 days."""
    settings = ForecastSettings(record_bytes=100, retention_days=7, replication=3)
    return forecast_of(MONTH, settings)


def rows_with(*names: str) -> list[dict[str, Any]]:
    """Rows of the month with some figures: the others are 0, and need no model."""
    return [
        {name: row[name] for name in ("minute", *names)}
        for row in MONTH.rows(HISTORY_DAYS)
    ]


def fleet_of(
    rows: Mapping[str, list[dict[str, Any]]],
    settings: ForecastSettings = SETTINGS,
    measures: Measures = MEASURES,
) -> Fleet:
    """The forecasts of views at the end of the month."""
    return forecast_fleet(rows, measures, settings, end_ms=END_MS, now_ms=END_MS)


def limit_of(one: Forecast, name: str) -> Reached:
    """The limit of a figure."""
    return next(limit for limit in one.limits if limit.name == name)


def test_next_week_is_within_five_percent(found: Forecast) -> None:
    """Bytes, time until the filter is full, and epoch headroom, of a growing month."""
    begin_ms = found.begin_ms
    assert begin_ms == MONTH.begin_ms + HISTORY_DAYS * DAY_MS
    bytes_a_day = MONTH.bytes_by_day[HISTORY_DAYS:].mean()
    assert found.figures["bytes"].week.mid == pytest.approx(bytes_a_day, rel=0.05)

    ids = np.cumsum(MONTH.grown["messages"])
    full_minute = int(np.searchsorted(ids, designed_ids(MONTH.filter_bits, 10)))
    limit = limit_of(found, "filter_ids")
    assert limit.at_ms is not None
    assert full_minute > HISTORY_DAYS * MINUTES_A_DAY
    full_days = full_minute / MINUTES_A_DAY
    found_days = (limit.at_ms - MONTH.begin_ms) / DAY_MS
    assert found_days == pytest.approx(full_days, rel=0.05)
    assert limit.earliest_ms is not None
    assert limit.latest_ms is not None
    assert limit.earliest_ms <= limit.at_ms <= limit.latest_ms

    most = MONTH.epoch_messages_max[HISTORY_DAYS * MINUTES_A_DAY :].max()
    headroom = found.figures["epoch_headroom"].week.mid
    assert headroom == pytest.approx(1 - most / 100, rel=0.05)


def test_eighty_percent_of_backtests_are_in_the_interval() -> None:
    """40 months of all kinds of growth and noise: 70 to 90 % of the next weeks."""
    covered = sum(backtest(number).covers for number in range(40))
    assert 0.7 * 40 <= covered <= 0.9 * 40


def test_days_follow_the_week(found: Forecast) -> None:
    """A Sunday is forecast below a Wednesday, as it was."""
    days = found.figures["messages"].days
    # 30 days after a Monday is a Wednesday.
    assert days[4].mid < 0.75 * days[0].mid
    assert days[11].mid < 0.75 * days[7].mid


def test_rate_limit_budget_is_reached_on_a_day_of_the_interval() -> None:
    """A busy participant that grows by 3 % a day comes to 90 messages an epoch."""
    busy = Month(days=60, messages_a_day=1_400.0, participants=1, growth=0.03)
    values = busy.epoch_messages_max.reshape(busy.days, -1).max(axis=1)
    paths = draw_paths(values[:HISTORY_DAYS].astype(float), 30)
    now = float(values[HISTORY_DAYS - 1])
    limit = reached("", 90, now, reached_by_level(paths, 90, now, 0), 0.8)
    first = int(np.argmax(values >= 90)) - HISTORY_DAYS
    assert first > 0
    assert limit.earliest_ms is not None
    assert limit.latest_ms is not None
    assert limit.earliest_ms <= first * DAY_MS <= limit.latest_ms


def test_limit_that_is_reached_is_now() -> None:
    """A filter with more ids than designed has reached its limit."""
    rows = rows_with("bloom_bits_set", "bloom_hashes")
    for row in rows:
        row["bloom_bits"] = MONTH.filter_bits // 2
    full = fleet_of({"a": rows}).views["a"]
    limit = limit_of(full, "filter_ids")
    assert limit.now > limit.limit
    assert limit.at_ms == limit.earliest_ms == limit.latest_ms == full.begin_ms


def test_limit_that_is_not_reached_has_no_time() -> None:
    """Neither by a level nor by a sum."""
    paths = np.full((10, 4), 5.0)
    day = np.full(24, 1 / 24)
    for times in (
        reached_by_level(paths, 6, 5, 0),
        reached_by_sum(paths, 51, 0, 0, day),
    ):
        assert reached("", 6, 5, times, 0.8)[3:6] == (None, None, None)


def test_sum_follows_the_hours_of_the_day() -> None:
    """What grows in one hour of the day reaches a limit in this hour."""
    profile = np.zeros(24)
    profile[13] = 1.0
    times = reached_by_sum(np.full((10, 4), 5.0), 12, 0, 0, profile)
    assert (times // HOUR_MS).tolist() == [2 * 24 + 13] * 4


def test_filter_that_rolls_over_does_not_reach_its_limit() -> None:
    """It says with how many ids it begins again, and gives no date."""
    rows = rows_with("messages", "bloom_bits", "bloom_hashes")
    for row in rows:
        ids = np.array([row["messages"] % 30_000])
        row["bloom_bits_set"] = int(bits_of(ids, MONTH.filter_bits)[0])
    one = fleet_of({"a": rows}).views["a"]
    limit = limit_of(one, "filter_ids")
    assert limit.at_ms is limit.earliest_ms is limit.latest_ms is None
    assert limit.note.startswith("rolls over at about 29,")
    figure = one.figures["filter_ids"]
    assert figure.week == pytest.approx([figure.past] * 3, rel=0.01)
    assert max(day.high for day in figure.days) < 30_000


def test_filter_that_is_full_again_within_an_hour_rolls_over() -> None:
    """The history has each hour's maximum, which does not fall by a fifth."""
    rows = rows_with("bloom_hashes")
    an_hour, most, kept = 3_600, 10_000, 5_000
    for number, row in enumerate(rows, start=1):
        row["messages"] = number * an_hour
        since = row["messages"] % (most - kept)
        ids = np.array([most if since < an_hour else kept + since])
        row["bloom_bits"] = 150_000
        row["bloom_bits_set"] = int(bits_of(ids, 150_000)[0])
    one = fleet_of({"a": rows}).views["a"]
    limit = limit_of(one, "filter_ids")
    assert limit.at_ms is limit.earliest_ms is limit.latest_ms is None
    assert limit.note == "rolls over at about 10,000 ids"
    figure = one.figures["filter_ids"]
    assert max(day.high for day in figure.days) == pytest.approx(most, rel=0.001)


def test_filter_with_more_ids_than_before_it_was_emptied_reaches_its_limit() -> None:
    """As after all participants began with empty filters once."""
    grown = rows_with("messages", *FILTER)
    emptied = [dict(row) for row in grown]
    for row in emptied[:200]:
        ids = np.array([row["messages"] + 10_000])
        row["bloom_bits_set"] = int(bits_of(ids, MONTH.filter_bits)[0])
    views = fleet_of({"grown": grown, "emptied": emptied}).views
    limits = [limit_of(one, "filter_ids") for one in views.values()]
    assert [limit.note for limit in limits] == ["", ""]
    assert all(limit.at_ms is not None for limit in limits)


@pytest.mark.parametrize("cycle", [10**9, 30_000], ids=["grows", "rolls over"])
@pytest.mark.parametrize(
    "quiet",
    [[300], range(22, HISTORY_DAYS * 24, 24), [HISTORY_DAYS * 24 - 1]],
    ids=["one hour", "each night", "the last hour"],
)
def test_hour_without_a_filter_is_no_rollover(quiet: Sequence[int], cycle: int) -> None:
    """When no frame comes for a while, no filter is in use: the last known one holds.

    The forecast is that of a history that shows this filter in these hours.
    """
    kept = rows_with("messages", *FILTER)
    for row in kept:
        ids = np.array([row["messages"] % cycle])
        row["bloom_bits_set"] = int(bits_of(ids, MONTH.filter_bits)[0])
    silent = [dict(row) for row in kept]
    for hour in quiet:
        kept[hour] |= {name: kept[hour - 1][name] for name in FILTER}
        silent[hour] |= dict.fromkeys(FILTER)
    views = fleet_of({"kept": kept, "silent": silent}).views
    assert views["silent"] == views["kept"]
    assert bool(limit_of(views["silent"], "filter_ids").note) == (cycle == 30_000)


def test_kafka_stores_the_records_of_its_retention(found: Forecast) -> None:
    """Every frame twice, as both taps write it, and 100 bytes beside each."""
    frames = MONTH.by_day("frames_content")
    written = 2 * (MONTH.bytes_by_day + 100 * frames)
    week = found.figures["kafka.bytes"].week.mid
    assert week == pytest.approx(written[HISTORY_DAYS:].mean(), rel=0.05)
    stored = found.figures["kafka.storage"].days
    truth = 3 * written[HISTORY_DAYS:].sum()
    assert stored[6].mid == pytest.approx(truth, rel=0.05)


def test_storage_needs_the_history_of_its_retention() -> None:
    """What was written before the history began is not known."""
    rows = {"a": rows_with("frames_content")}
    settings = ForecastSettings(retention_days=40)
    figures = fleet_of(rows, settings).views["a"].figures
    assert "kafka.storage" not in figures
    assert "kafka.bytes" in figures


def test_sum_is_that_of_the_channels_with_a_forecast() -> None:
    """A channel that fell silent has none, and is in no sum."""
    silent = Month(seed=3, days=20)
    rows = {
        "a": rows_with("bytes_content"),
        "b": rows_with("bytes_history"),
        "c": silent.rows(),
    }
    fleet = fleet_of(rows)
    assert list(fleet.views) == ["a", "b"]
    assert str(fleet.without["c"]).startswith("silent since 2026-08-30 00:00")
    assert fleet.total is not None
    parts = sum(one.figures["bytes"].past for one in fleet.views.values())
    assert fleet.total.figures["bytes"].past == pytest.approx(parts)
    assert fleet.total.limits == ()


def test_first_views_are_done_before_the_time_is_over() -> None:
    """The caller's order says which ones matter most."""
    rows = {name: rows_with("messages") for name in "cab"}
    times = iter([False, True, True])
    fleet = forecast_fleet(
        rows,
        MEASURES,
        SETTINGS,
        end_ms=END_MS,
        now_ms=END_MS,
        is_over=lambda: next(times),
    )
    assert list(fleet.views) == ["c"]
    assert fleet.without == {}
    assert fleet.hidden == 2


def test_parts_have_the_names_of_the_page() -> None:
    """Each column of bytes is a part, of channels and of groups."""
    assert set(MEASURES.parts) == {
        "content", "histories", "filters", "requests", "other",
    }  # fmt: skip
    groups = measures_of(GROUP_FIGURES)
    assert set(groups.parts) == {"ack", "offer", "request", "message", "other"}
    assert groups.gauges == ()


def test_group_has_bytes_and_no_limits() -> None:
    """A kind without frames, filters and epochs has forecasts of what it counts."""
    rows = [
        {
            "minute": row["minute"],
            "messages": row["messages"],
            "bytes_message": row["bytes_content"],
            "records_message": row["messages"],
            "retransmissions_message": row["rebroadcasts_retry"],
        }
        for row in MONTH.rows(HISTORY_DAYS)
    ]
    measures = measures_of(GROUP_FIGURES)
    one = fleet_of({"g": rows}, measures=measures).views["g"]
    assert one.limits == []
    assert "kafka.bytes" not in one.figures
    assert 0 < one.figures["retransmission"].week.mid < one.figures["bytes"].week.mid


def test_figure_that_never_changes_stays() -> None:
    """A constant has no deviation, and needs no model."""
    assert (draw_paths(np.full(20, 5.0), 3) == np.full((3, PATHS), 5.0)).all()


def test_figure_that_differs_by_rounding_stays() -> None:
    """Sums of floats are no deviation that a model can follow."""
    values = 19_500 + 4e-12 * (np.arange(28.0) % 3).astype(np.float64)
    assert np.ptp(values) > 0
    assert (draw_paths(values, 3) == values[-1]).all()


def test_exact_line_stops_no_other_forecast() -> None:
    """The model has no solution for it: that view alone has no forecast."""
    line = rows_with("messages")
    with pytest.raises(NotFitted):
        draw_paths(np.expm1(0.1 * np.arange(28)), 7)
    for row in line:
        day, past = divmod((row["minute"] - MONTH.begin_ms) / DAY_MS, 1)
        before, whole = (np.expm1(0.1 * np.arange(day + n)).sum() for n in (0, 1))
        row["messages"] = float(before + past * (whole - before))
    fleet = fleet_of({"a": line, "b": rows_with("bytes_content")})
    assert list(fleet.views) == ["b"]
    assert isinstance(fleet.without["a"], NotFitted)


def test_missing_library_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "statsmodels.tsa.statespace.structural", None)
    with pytest.raises(ModelMissing, match=r"pip install 'sds-monitor\[plan\]'"):
        draw_paths(np.arange(20.0), 3)


def test_future_alone_gives_no_forecast() -> None:
    """Rows that are all of the future are those of a clock that jumped."""
    rows = {"a": rows_with("messages")}
    long_ago_ms = END_MS - 60 * DAY_MS
    fleet = forecast_fleet(rows, MEASURES, SETTINGS, end_ms=0, now_ms=long_ago_ms)
    assert isinstance(fleet.without["a"], ClockJumped)
    assert fleet.total is None
