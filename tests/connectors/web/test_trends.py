"""Figures of intervals, from absolute figures of some minutes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.history.schema import NumberedMinute, Row, minute_row
from connectors.web.trends import (
    HOURS,
    Growth,
    Trend,
    recent_trend,
    trend,
)
from sds_core.observer.figures import Unit
from sds_core.observer.histogram import Histogram
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelTotals

COUNTS = [f.field for f in CHANNEL_FIGURES.grown if f.unit is Unit.COUNT]
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
END_MS = 30_000 * 24 * HOUR_MS
CLOCK_MS = END_MS - 1


def row(minute_ms: int, **figures: Any) -> Row:
    """The row that the job would have told."""
    return minute_row(NumberedMinute(1, "a", minute_ms, ChannelTotals(**figures)))


class Rows:
    """A history of one channel that notes what it was asked for."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.asked: list[tuple[int, int]] = []

    def __call__(
        self, channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> list[Row]:
        """As `Sources.find_minutes`."""
        self.asked.append((since_ms, until_ms))
        return [
            {name: one[name] for name in ("minute", *fields)}
            for one in self.rows
            if since_ms <= one["minute"] < until_ms
        ]


def recent(rows: Sequence[Row], first_event_ms: int = 0, hours: int = 1) -> Trend:
    """The trend up to `END_MS`."""
    return recent_trend(
        CHANNEL_FIGURES,
        Rows(rows),
        "a",
        first_event_ms=first_event_ms,
        clock_ms=CLOCK_MS,
        hours=hours,
    )


def messages(found: Trend) -> list[int | None]:
    """Messages of each interval."""
    return [None if one is None else one["messages"] for one in found.growth]


@given(
    growth=st.dictionaries(
        st.integers(0, 59),
        st.tuples(st.sampled_from(COUNTS), st.integers(1, 9), st.integers(0, 700_000)),
    ),
    step=st.sampled_from([1, 3, 5, 15]),
)
def test_intervals_add_up_to_the_total_growth(
    growth: dict[int, tuple[str, int, int]], step: int
) -> None:
    """For any length of intervals and any missing minutes."""
    counts, latency = dict.fromkeys(COUNTS, 100), Histogram()
    rows: list[Row] = []
    for minute, (name, more, latency_ms) in sorted(growth.items()):
        counts[name] += more
        latency.observe(latency_ms)
        buckets = {"ack_latency_ms_definite_buckets": list(latency.counts)}
        rows.append(row(minute * MINUTE_MS) | counts | buckets)
    before = Growth(dict.fromkeys(COUNTS, 100))
    found = trend(
        CHANNEL_FIGURES,
        rows,
        before,
        begin_ms=0,
        end_ms=HOUR_MS,
        step_ms=step * MINUTE_MS,
    )
    assert len(found.growth) == 60 // step
    assert all(found.total[name] == counts[name] - 100 for name in COUNTS)
    assert found.total.histogram("definite_latency").counts == latency.counts


def test_growth_counts_in_the_interval_of_its_minute() -> None:
    """Minutes without a row had no change."""
    rows = [
        row(END_MS - HOUR_MS - MINUTE_MS, messages=10),
        row(END_MS - HOUR_MS, messages=12),
        row(END_MS - 2 * MINUTE_MS, messages=13),
        row(END_MS - MINUTE_MS, messages=17),
    ]
    assert messages(recent(rows)) == [2, *[0] * 57, 1, 4]
    assert messages(recent(rows, hours=3))[-20:] == [2, *[0] * 18, 5]


def test_new_checkpoint_counts_from_zero() -> None:
    """After figures fell, their new values are the growth."""
    rows = [
        row(END_MS - HOUR_MS - MINUTE_MS, messages=10),
        row(END_MS - 2 * MINUTE_MS, messages=3, gaps_lost=1),
        row(END_MS - MINUTE_MS, messages=5, gaps_lost=1),
    ]
    found = recent(rows)
    assert messages(found) == [*[0] * 58, 3, 2]
    assert found.total["gaps_lost"] == 1


@pytest.mark.parametrize("ago", [2 * HOUR_MS, 30 * MINUTE_MS])
def test_busier_new_checkpoint_counts_from_zero(ago: int) -> None:
    """Rows before its first event are of another, even if their figures are smaller."""
    rows = [
        row(END_MS - ago, messages=3),
        row(END_MS - 4 * MINUTE_MS, messages=7, gaps_lost=1),
        row(END_MS - MINUTE_MS, messages=9, gaps_lost=1),
    ]
    found = recent(rows, first_event_ms=END_MS - 4 * MINUTE_MS + 1)
    assert messages(found)[-4:] == [7, 0, 0, 2]
    assert found.total["gaps_lost"] == 1


def test_figures_of_a_new_channel_are_all_growth() -> None:
    """There was nothing before its first event."""
    rows = [row(END_MS - 2 * MINUTE_MS, messages=3)]
    found = recent(rows, first_event_ms=END_MS - 90_000)
    assert messages(found) == [3, 0]
    assert found.begin_ms == END_MS - 2 * MINUTE_MS


def test_last_row_of_a_quiet_channel_is_read_a_day_back() -> None:
    """The next minute is compared with it."""
    history = Rows(
        [row(END_MS - 9 * HOUR_MS, messages=10), row(END_MS - MINUTE_MS, messages=11)]
    )
    found = recent_trend(
        CHANNEL_FIGURES, history, "a", first_event_ms=0, clock_ms=CLOCK_MS, hours=1
    )
    assert messages(found) == [*[0] * 59, 1]
    begin_ms = END_MS - HOUR_MS
    assert history.asked == [
        (begin_ms - MINUTE_MS, END_MS),
        (begin_ms - 24 * HOUR_MS, begin_ms),
    ]


@pytest.mark.parametrize("first_event_ms", [0, END_MS - MINUTE_MS])
def test_growth_without_an_earlier_row_is_unknown(
    first_event_ms: int,
) -> None:
    """A later history or another checkpoint must not make a peak."""
    rows = [
        row(END_MS - 3 * MINUTE_MS, messages=1_000),
        row(END_MS - 2 * MINUTE_MS, messages=1_002),
    ]
    found = recent(rows, first_event_ms=first_event_ms)
    assert messages(found) == [None, 2, 0]
    assert found.total["messages"] == 2


def test_field_missing_in_an_old_row_is_zero() -> None:
    """Older files have null for newer figures."""
    old = row(END_MS - MINUTE_MS, messages=1) | {
        "deliveries_lost": None,
        "ack_latency_ms_definite_buckets": None,
    }
    found = recent([old], first_event_ms=END_MS - 1)
    assert messages(found)[-1] == 1


@pytest.mark.parametrize(("hours", "step_ms"), HOURS.items())
def test_last_interval_is_that_of_the_clock(hours: int, step_ms: int) -> None:
    """Intervals begin at round times, and the last contains the clock."""
    found = recent_trend(
        CHANNEL_FIGURES,
        Rows([]),
        "a",
        first_event_ms=0,
        clock_ms=END_MS + 1,
        hours=hours,
    )
    assert len(found.growth) == hours * HOUR_MS // step_ms
    assert found.begins_ms[-1] == END_MS
    assert all(begin_ms % step_ms == 0 for begin_ms in found.begins_ms)


@pytest.mark.parametrize(
    ("age_minutes", "step_minutes"), [(2, 1), (59, 1), (100, 3), (300, 5), (1_000, 15)]
)
def test_young_channel_has_shorter_intervals(
    age_minutes: int, step_minutes: int
) -> None:
    """They begin with it, so that its charts are as wide as those of others."""
    first_ms = END_MS - age_minutes * MINUTE_MS
    found = recent([row(first_ms, messages=3)], first_event_ms=first_ms, hours=24)
    assert found.step_ms == step_minutes * MINUTE_MS
    assert found.begin_ms == first_ms // found.step_ms * found.step_ms
    assert messages(found)[0] == 3
    assert found.begins_ms[-1] + found.step_ms == END_MS


def test_young_channel_without_an_ended_minute_has_one_interval() -> None:
    """Instead of a day of nothing."""
    assert messages(recent([], first_event_ms=CLOCK_MS, hours=24)) == [0]


def test_trend_begins_with_the_oldest_known_minute() -> None:
    """Without a history, older ones are not stored: that is no zero."""
    rows = [
        row(END_MS - 50 * MINUTE_MS, messages=90),
        row(END_MS - 60_000, messages=91),
    ]
    found = recent(rows, first_event_ms=1, hours=24)
    assert found.begin_ms == END_MS - 50 * MINUTE_MS
    assert found.step_ms == MINUTE_MS
    assert messages(found) == [None, *[0] * 48, 1]
