"""Plans that a history gives, and what-if beside what then happens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from sds_core.planning.channel import ChannelPlan
from sds_core.planning.errors import NoForecast
from sds_core.planning.hours import DAY_MS, HOUR_MS, hour_rows, last_hour_ms
from sds_core.planning.measured_channel import MeasuredChannel, measured_channel
from sds_core.planning.measures import FILTER
from tests.support.planning.watched import MEASURES, measured_of, predictions, rows_of

PLAN = ChannelPlan(participants=3, messages_per_day=4_320, loss=0.1)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Hours of a channel that was simulated and monitored."""
    return hour_rows(rows_of(PLAN, 5, seed=1), MEASURES.gauges)


def _measured(
    rows: Sequence[dict[str, Any]], end_ms: int | None = None
) -> MeasuredChannel:
    end_ms = end_ms or last_hour_ms(rows[-1]["minute"])
    return measured_channel(rows, MEASURES, end_ms=end_ms, now_ms=end_ms)


def test_history_gives_the_plan_that_made_it(rows: list[dict[str, Any]]) -> None:
    """Traffic, loss and causal history; the rest is assumed, and said."""
    found = _measured(rows)
    assert found.hours == 3
    assert found.plan.participants == 3
    assert found.plan.messages_per_day == pytest.approx(4_320, rel=0.1)
    assert found.plan.loss == pytest.approx(0.1, abs=0.02)
    assert found.plan.payload_least_bytes == pytest.approx(110, abs=8)
    assert found.plan.causal_history == 20
    assert found.plan.filter_ids == pytest.approx(180 * 4, rel=0.2)
    assert "does not store delays" in found.assumed[0]
    assert "profile default" in found.assumed[1]
    assert found.figures["bytes_per_day"] == pytest.approx(
        sum(
            found.figures[f"{part}_bytes_per_day"]
            for part in ("content", "history", "filter", "repair", "other")
        )
    )


@pytest.mark.slow
def test_prediction_of_a_changed_setting_holds() -> None:
    """Delivery and bytes within 5 %, latencies within 15 %.

    `python -m benchmarks.what_if` does this for more settings.
    """
    found = predictions(
        measured_of(PLAN, 10, seed=1_001).plan,
        PLAN,
        {"causal_history": "5", "sync_interval_s": "60"},
        hours=10,
        seeds=range(1, 7),
        receptions=3_000,
    )
    for name, one in found.items():
        limit = 0.15 if name.endswith("_s") else 0.05
        assert abs(one.error) < limit, (name, one)


def test_last_known_filter_is_that_of_the_plan(rows: list[dict[str, Any]]) -> None:
    """In a silence, no filter is in use, but the channel keeps its ids."""
    *before, last = rows
    silent = last | dict.fromkeys(FILTER)
    kept = last | {name: before[-1][name] for name in FILTER}
    end_ms = last["minute"] // HOUR_MS * HOUR_MS + HOUR_MS
    found, expected = (_measured([*before, one], end_ms) for one in (silent, kept))
    assert found.plan.filter_ids == expected.plan.filter_ids
    assert expected.plan.filter_ids


def test_message_of_a_full_segment_is_one_frame(rows: list[dict[str, Any]]) -> None:
    """With its header, its content is longer than a segment of a payload."""
    full = [row | {"bytes_content": 102_480 * row["frames_content"]} for row in rows]
    found = _measured(full)
    assert found.plan.segments() == (1, 0)
    assert found.plan.payload_least_bytes == found.plan.payload_most_bytes == 102_400
    assert found.assumed[-1] == (
        "The content of a message has 102,475 bytes on average; the plan assumes the "
        "maximum, 102,400 bytes."
    )


def test_too_little_traffic_gives_no_plan(rows: list[dict[str, Any]]) -> None:
    """Neither none, nor one message, nor one participant, nor one hour."""
    one_message = [
        {"minute": at, "messages": 1, "participants_lately": 2}
        for at in (HOUR_MS * 496_112, HOUR_MS * 496_114)
    ]
    alone = [row | {"participants_lately": 1} for row in rows]
    for history, text in (
        ([], "^0 messages of 0 participants in 0 hours of history, at least 20"),
        (rows[:1], "^0 messages of 0 participants in 0 hours of history"),
        (one_message, "^0 messages of 2 participants in 1 hour of history, at least"),
        (alone, "messages of 1 participant in 3 hours of history, at least 20"),
    ):
        with pytest.raises(NoForecast, match=text):
            _measured(history, last_hour_ms(history[-1]["minute"]) if history else 1)


def test_messages_without_frames_give_no_plan(rows: list[dict[str, Any]]) -> None:
    """They show no lengths and no causal histories."""
    framed = ("frames_content", "frames_sync", "frames_ephemeral")
    bare = [row | dict.fromkeys(framed, 0) for row in rows]
    with pytest.raises(NoForecast, match=r"^0 messages of 3 participants"):
        _measured(bare)


def test_silent_channel_and_wrong_clock_give_no_plan(
    rows: list[dict[str, Any]],
) -> None:
    """They say when."""
    end_ms = last_hour_ms(rows[-1]["minute"])
    with pytest.raises(NoForecast, match=r"^silent since 2026-"):
        _measured(rows, end_ms + 4 * DAY_MS)
    with pytest.raises(NoForecast, match=r"a clock jumped$"):
        measured_channel(rows, MEASURES, end_ms=end_ms, now_ms=end_ms - 3 * DAY_MS)


def test_channel_without_deliveries_has_no_loss(rows: list[dict[str, Any]]) -> None:
    """As if all senders used filters that the monitor cannot read."""
    blind = [
        {name: value for name, value in row.items() if "deliver" not in name}
        for row in rows
    ]
    found = _measured(blind)
    assert found.plan.loss == 0
    assert math.isnan(found.figures["monitor_first_pass"])
    assert found.assumed[-1].endswith("the loss is 0.")
