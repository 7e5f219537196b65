"""Formatting of untrusted text, numbers and times."""

from __future__ import annotations

import pytest

from sds_core import text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("plain room", "plain room"),
        ("two\nlines\x00\x1b[31m", "two\\nlines\\x00\\x1b[31m"),
        ("evil\u202egnp", "evil\\u202egnp"),
        ("half \ud800", "half \\ud800"),
        ("it's a \\ and a \u00fc", "it's a \\ and a \u00fc"),
    ],
)
def test_text_that_cannot_be_printed_is_escaped(given: str, expected: str) -> None:
    """All other characters, quotes included, stay unchanged."""
    assert text.printable(given) == expected


def test_hidden_characters_of_a_page_become_escapes() -> None:
    """Its line ends and every visible character stay."""
    given = "<b>a\x1b[31m\u202eb\u2066</b>\n\t\u00fc \u200d\U0001f600\x9b\r"
    assert text.visible(given) == (
        "<b>a\\x1b[31m\\u202eb\\u2066</b>\n\t\u00fc \u200d\U0001f600\\x9b\\r"
    )


def test_white_space_becomes_one_space() -> None:
    """Line ends included."""
    assert text.one_line(" a\n\n b\tc ") == "a b c"


def test_shortened_text_has_beginning_and_end() -> None:
    """It has exactly the allowed number of characters."""
    assert text.shorten("abcdefghij", 10) == "abcdefghij"
    assert text.shorten("abcdefghijk", 10) == "abcdef…ijk"


def test_similar_name_is_suggested() -> None:
    """The most similar one, escaped; nothing if none is similar."""
    assert text.did_you_mean("triger", ["topic", "trigger"]) == (
        " (did you mean 'trigger'?)"
    )
    assert text.did_you_mean("ro\nm", ["ro\nom"]) == r" (did you mean 'ro\nom'?)"
    assert text.did_you_mean("triger", ["bootstrap"]) == ""


def test_bytes_that_are_not_utf_8_become_escapes() -> None:
    """No byte is lost."""
    assert text.decode_text(b"a\xff\xc3\xbc") == "a\\xff\u00fc"


def test_numbers_have_separators_and_nouns_a_plural() -> None:
    """Also zero."""
    assert text.number(12_345) == "12,345"
    assert text.counted(1, "channel") == "1 channel"
    assert text.counted(0, "channel") == "0 channels"
    assert text.counted(2_000, "channel") == "2,000 channels"


def test_times_are_in_utc() -> None:
    """To the millisecond, second or minute; before 1970 too."""
    assert text.iso_time(1_786_276_990_123) == "2026-08-09T12:03:10.123Z"
    assert text.iso_time(-1) == "1969-12-31T23:59:59.999Z"
    assert text.utc_time(1_786_276_990_123) == "2026-08-09 12:03:10 UTC"
    assert text.time_of_day(1_786_276_990_123) == "12:03"


@pytest.mark.parametrize("unix_ms", [10**15, 10**18, -(10**15)])
def test_time_outside_the_calendar_is_in_milliseconds(unix_ms: int) -> None:
    """A sender's clock may have any value."""
    for form in (text.iso_time, text.utc_time, text.time_of_day):
        assert form(unix_ms) == f"{unix_ms} ms"


@pytest.mark.parametrize(
    ("count_bytes", "expected"),
    [
        (0, "0 B"),
        (2_500_000_000, "2.5 GB"),
        (999, "999 B"),
        (12_345_678, "12.3 MB"),
        (999_700, "1 MB"),
        (2.5e15, "2.5 PB"),
    ],
)
def test_size_is_in_the_unit_that_reads_best(count_bytes: float, expected: str) -> None:
    """By powers of 1000."""
    assert text.byte_size(count_bytes) == expected
