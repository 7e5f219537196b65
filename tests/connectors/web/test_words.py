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
    """Whole minutes are minutes, everything else is seconds."""
    assert words.duration(milliseconds) == text


def test_percentile_is_the_upper_bound_of_its_bucket(histogram: MakeHistogram) -> None:
    """What a histogram cannot know is not made up."""
    assert words.percentile(histogram(1_001), 50) == "≤ 2.5 s"
    assert words.percentile(histogram(600_001), 50) == "> 10 min"
    assert words.percentile(histogram(), 50) == "\N{EN DASH}"


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 0, "\N{EN DASH}"), (0, 3, "0 %"), (3, 3, "100 %"), (9_999, 10_000, "99 %")],
)
def test_only_all_of_it_is_a_hundred_percent(part: int, whole: int, text: str) -> None:
    """Rounding never hides a remainder."""
    assert words.share(part, whole) == text


def test_share_is_as_exact_as_asked_for() -> None:
    """With decimals it is rounded down too."""
    assert words.share(99_999, 100_000, decimals=2) == "99.99 %"
    assert words.share(2, 3, decimals=1) == "66.6 %"
    assert words.share(3, 3, decimals=2) == "100 %"


@pytest.mark.parametrize(("ratio", "text"), [(0.95, "95 %"), (0.9995, "99.95 %")])
def test_objective_reads_as_it_was_written(ratio: float, text: str) -> None:
    """No digit is made up."""
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
def test_age_is_in_the_largest_unit_that_says_enough(
    milliseconds: int, text: str
) -> None:
    """Two of a unit, or more."""
    assert words.age(milliseconds) == text


@pytest.mark.parametrize(
    ("count_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (12_345_678, "12.3 MB"), (2_500_000_000, "2.5 GB")],
)
def test_size_is_in_the_unit_that_reads_best(count_bytes: int, text: str) -> None:
    """By powers of 1000."""
    assert words.size(count_bytes) == text


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
    """Line ends, controls and direction marks are shown as what they are."""
    assert words.short(channel) == text
    assert words.whole(channel) == text


def test_whole_text_is_not_shortened() -> None:
    """A message id is of use only whole."""
    assert words.whole("ab" * 1_000) == "ab" * 1_000


def test_unknown_reason_is_shown_as_it_is() -> None:
    """A verdict with a reason that the page does not know still has a reason."""
    assert words.reason("solar_flare") == "solar flare"


def test_absent_time_is_a_dash() -> None:
    """A clock that has not started is not 1970."""
    assert words.utc(None) == words.utc(0) == "\N{EN DASH}"
    assert words.utc(1_786_276_990_123) == "2026-08-09 12:03:10 UTC"


@pytest.mark.parametrize("unix_ms", [10**15, 10**18, -(10**15)])
def test_time_that_no_date_can_show_is_its_number(unix_ms: int) -> None:
    """Clocks of strangers may say anything."""
    assert words.utc(unix_ms) == words.time_of_day(unix_ms) == f"{unix_ms} ms"


def test_very_long_text_is_bounded() -> None:
    """What a page shows of it is its beginning and its end."""
    text = words.bounded("a" + "x" * 1_000_000 + "z")
    assert len(text) == words.LONGEST
    assert (text[0], text[-1]) == ("a", "z")
    assert words.bounded("ab" * 500) == "ab" * 500
