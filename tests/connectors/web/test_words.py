"""Figures in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connectors.web import words
from sds_core.observer.histogram import Histogram

MakeHistogram = Callable[..., Histogram]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (250, "0.25 s"),
        (1_000, "1 s"),
        (2_500, "2.5 s"),
        (60_000, "1 min"),
        (90_000, "90 s"),
        (600_000, "10 min"),
    ],
)
def test_duration_is_in_the_unit_that_reads_best(milliseconds: int, text: str) -> None:
    """Whole minutes are minutes, all other durations are seconds."""
    assert words.duration(milliseconds) == text


def test_percentile_is_the_upper_bound_of_its_bucket(histogram: MakeHistogram) -> None:
    """A histogram does not know more."""
    assert words.percentile(histogram(1_001), 50) == "≤ 2.5 s"
    assert words.percentile(histogram(600_001), 50) == "> 10 min"
    assert words.percentile(histogram(), 50) == "\N{EN DASH}"


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 0, "\N{EN DASH}"), (0, 3, "0 %"), (3, 3, "100 %"), (9_999, 10_000, "99 %")],
)
def test_incomplete_share_is_never_a_hundred_percent(
    part: int, whole: int, text: str
) -> None:
    """Shares are rounded down."""
    assert words.share(part, whole) == text


def test_share_has_the_requested_decimals() -> None:
    """It is rounded down too."""
    assert words.share(99_999, 100_000, decimals=2) == "99.99 %"
    assert words.share(2, 3, decimals=1) == "66.6 %"
    assert words.share(3, 3, decimals=2) == "100 %"


@pytest.mark.parametrize(("ratio", "text"), [(0.95, "95 %"), (0.9995, "99.95 %")])
def test_objective_reads_as_it_was_written(ratio: float, text: str) -> None:
    """No digit is added."""
    assert words.percent(ratio) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5, "0 s"),
        (119_999, "119 s"),
        (120_000, "2 min"),
        (7_200_000, "2 h"),
        (172_800_000, "2 d"),
    ],
)
def test_age_has_the_largest_unit_with_a_value_of_two(
    milliseconds: int, text: str
) -> None:
    """Or the smallest unit."""
    assert words.age(milliseconds) == text


def test_long_channel_id_keeps_both_ends() -> None:
    """Ids that share their beginning can still be told apart."""
    name = words.short("/topic/" + "x" * 1_000_000 + "/room-12")
    assert name.startswith("/topic/x")
    assert name.endswith("x/room-12")
    assert len(name) == 40


@pytest.mark.parametrize(
    ("channel", "text"),
    [
        ("plain room", "plain room"),
        ("two\nlines\x00", "two\\nlines\\x00"),
        ("evil\u202egnp", "evil\\u202egnp"),
        ("", "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"),
    ],
)
def test_channel_id_cannot_leave_its_line(channel: str, text: str) -> None:
    """Line ends, control and direction characters are escaped."""
    assert words.short(channel) == text
    assert words.whole(channel) == text


def test_whole_text_is_not_shortened() -> None:
    """A message id is useful only if it is complete."""
    assert words.whole("ab" * 1_000) == "ab" * 1_000


def test_unknown_reason_is_displayed_unchanged() -> None:
    """The page may not know every reason."""
    assert words.reason("solar_flare", 600_000) == "solar flare"


def test_absent_time_is_a_dash() -> None:
    """A clock that has not started is not 1970."""
    assert words.utc(None) == words.utc(0) == "\N{EN DASH}"
    assert words.utc(1_786_276_990_123) == "2026-08-09 12:03:10 UTC"


@pytest.mark.parametrize("unix_ms", [10**15, 10**18, -(10**15)])
def test_time_outside_the_calendar_is_a_number(unix_ms: int) -> None:
    """Clocks of senders may have any value."""
    assert words.utc(unix_ms) == words.time_of_day(unix_ms) == f"{unix_ms} ms"


def test_very_long_text_is_shortened() -> None:
    """The page has its beginning and its end."""
    text = words.bounded("a" + "x" * 1_000_000 + "z")
    assert len(text) == words.LONGEST
    assert (text[0], text[-1]) == ("a", "z")
    assert words.bounded("ab" * 500) == "ab" * 500
