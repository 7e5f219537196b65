"""The list of channels has the figures of the last hour, and a trend of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from connectors.web.last_hour import STEP_MS, LastHour
from connectors.web.words import NOTHING
from sds_core.observer.growth import Recorded, counted_values
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from tests.support.web.reading import keys, text_of

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

HOUR_MS = 3_600_000
BEGIN_MS = 1_786_273_200_000
"""11:00 UTC: begin of the hour at the clock of every snapshot, 12:03:10."""


def recorded(minutes: int, figures: ChannelTotals) -> Recorded:
    """Return figures so many minutes after the begin of the hour."""
    values = counted_values(CHANNEL_FIGURES, figures)
    return Recorded(BEGIN_MS + minutes * 60_000, values)


@pytest.fixture
def old(stage: Any, snapshot: MakeSnapshot, totals: MakeTotals) -> Any:
    """A channel that lost messages yesterday, and sent some in the last hour."""
    stage.snapshot = snapshot(
        {"c": totals(first_event_ms=1, messages=1_042, gaps_lost=7, gaps_open=3)}
    )
    stage.recent = {
        "c": [
            recorded(-300, totals(messages=1_000, gaps_lost=7)),
            recorded(5, totals(messages=1_010, gaps_lost=7)),
            recorded(6, totals(messages=1_020, gaps_lost=7)),
        ]
    }
    return stage


@pytest.mark.usefixtures("old")
def test_columns_show_the_last_hour(client: httpx.Client) -> None:
    """Messages lost yesterday are not lost now; gauges are as of now."""
    text = text_of(client, "/")
    assert "The counts and times begin at 11:00 UTC (event time)." in text
    assert "5 min: 10, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 22 42 " in text
    assert " 3 0 " in text
    assert "1,042" not in text
    assert " 7 " not in text


@pytest.mark.usefixtures("old")
def test_figures_since_the_first_record_are_one_click_away(
    client: httpx.Client,
) -> None:
    """With the same order and filter, which stay with them."""
    html = client.get("/?sort=-messages&find=c").text
    assert 'href="?window=all&amp;find=c&amp;sort=-messages"' in html
    path = "/?window=all&find=c&sort=-messages"
    text = text_of(client, path)
    assert "The counts and times begin with the checkpoint's first record." in text
    assert "1,042" in text
    assert "Messages in steps" not in text
    html = client.get(path).text
    assert '<input type="hidden" name="window" value="all">' in html
    assert 'href="?window=hour&amp;find=c&amp;sort=-messages"' in html


def test_channels_are_sorted_by_the_figures_that_the_page_shows(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """One whose hour is not known is last in both orders."""
    stage.snapshot = snapshot(
        {
            "busy": totals(first_event_ms=1, messages=9),
            "once": totals(first_event_ms=1, messages=900),
            "unknown": totals(first_event_ms=1, messages=500),
        }
    )
    stage.recent = {
        "busy": [recorded(-1, totals(messages=2))],
        "once": [recorded(-1, totals(messages=899))],
    }
    assert keys(client, "/?sort=messages") == ["busy", "once", "unknown"]
    assert keys(client, "/?sort=-messages") == ["once", "busy", "unknown"]
    assert keys(client, "/?window=all&sort=messages") == ["once", "unknown", "busy"]


def test_row_says_if_its_figures_begin_later(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """A young channel, one that is known since a start, and one that is not."""
    stage.snapshot = snapshot(
        {
            "started": totals(first_event_ms=1, messages=9),
            "unknown": totals(first_event_ms=1, messages=8),
            "young": totals(first_event_ms=BEGIN_MS + 90_000, messages=77),
        }
    )
    stage.recent = {"started": [recorded(30, totals(messages=2))]}
    text = text_of(client, "/")
    assert "since 11:30 UTC 7" in text
    assert f"not known yet {NOTHING}" in text
    assert "since 11:01 UTC 77" in text


def test_trend_has_a_step_for_each_five_minutes(stage: Any, totals: MakeTotals) -> None:
    """The running one is the last; steps without a minute are zero."""
    channel = totals(first_event_ms=1, messages=1_042)
    stage.recent = {
        "c": [
            recorded(0, totals(messages=1_000)),
            recorded(5, totals(messages=1_010)),
            recorded(6, totals(messages=1_020)),
        ]
    }
    hour = LastHour(stage, CHANNEL_FIGURES, BEGIN_MS + HOUR_MS + STEP_MS - 1)
    assert hour.begin_ms == BEGIN_MS
    trend = hour.trends({"c": channel})["c"]
    assert trend.text == (
        "Messages in steps of 5 min: 10, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 22"
    )
    assert trend.picture.count("M") == 3


def test_trend_of_a_channel_that_came_back_counts_from_zero(
    stage: Any, totals: MakeTotals
) -> None:
    """Its older minutes have greater figures, and are those of another life."""
    stage.recent = {"c": [recorded(2, totals(messages=900))]}
    channel = totals(first_event_ms=BEGIN_MS + 20 * 60_000, messages=4)
    hour = LastHour(stage, CHANNEL_FIGURES, BEGIN_MS + HOUR_MS)
    assert hour.trends({"c": channel})["c"].text.endswith(" 0, 4")
    assert hour.lately("c", channel).figures.messages == 4


def test_trouble_says_since_when(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """With the date if it is another day."""
    stage.snapshot = snapshot(
        {
            "a": totals(Verdict.FAILING, verdict_since_ms=BEGIN_MS),
            "b": totals(Verdict.DEGRADED, verdict_since_ms=BEGIN_MS - 24 * HOUR_MS),
            "c": totals(verdict_since_ms=BEGIN_MS - 60_000),
        }
    )
    text = text_of(client, "/")
    assert "since 11:00 UTC" in text
    assert "since 2026-08-08 11:00:00 UTC" in text
    assert "10:59" not in text
