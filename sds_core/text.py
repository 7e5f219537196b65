"""Formats text, numbers and times for terminals, logs and pages.

Ids and messages come from untrusted senders, so `printable` makes them safe to print in
one line. This module does not escape HTML, because the templates of the pages do so. If
a time is outside the years 1 to 9999, the functions for times return the Unix time in
milliseconds instead, such as "253402300800000 ms".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from difflib import get_close_matches

_LONGEST_VALUE = 200

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    # Bidi_Control in Unicode's PropList.
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def printable(text: str) -> str:
    r"""Return the text with each unprintable character replaced by an escape.

    Line ends, control characters and changes of text direction could forge lines of
    output, so they become escapes such as ``\n`` or ``\u202e``.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )


def visible(text: str) -> str:
    r"""Return a text for a page or label, with each hidden character as an escape.

    Control characters and changes of text direction could make a text look like a
    different text, so they become escapes such as ``\u202e``. Line ends and tabs stay.
    """
    return _HIDDEN.sub(lambda match: printable(match[0]), text)


def one_line(text: str) -> str:
    """Return the text with each run of white space replaced by one space."""
    return " ".join(text.split())


def shorten(text: str, limit: int) -> str:
    """Return the text with at most `limit` characters.

    If the text is longer, the result is its beginning, "…" and its end. The result
    includes the end, because different long ids often have the same beginning.
    """
    if len(text) <= limit:
        return text
    tail = limit // 3
    return text[: limit - tail - 1] + "…" + text[-tail:]


def shown(value: object) -> str:
    """Return a value's `repr`, shortened for an error message."""
    return shorten(repr(value), _LONGEST_VALUE)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for an error about an unknown name.

    The suggestion is " (did you mean 'x'?)" if `x` is the most similar name in `known`,
    or "" if no known name is similar. If `name` is long, only its beginning is compared
    with the known names.
    """
    close = get_close_matches(name[:_LONGEST_VALUE], known, 1)
    return f" (did you mean {shown(close[0])}?)" if close else ""


def decode_text(value: bytes) -> str:
    r"""Decode UTF-8; each byte that is not UTF-8 becomes an escape such as ``\xff``."""
    return value.decode(errors="backslashreplace")


def number(value: int) -> str:
    """Return 12345 as "12,345"."""
    return f"{value:,}"


def counted(value: int, noun: str) -> str:
    """Return a number and a noun with a regular plural: "1 channel", "2 channels"."""
    return f"{number(value)} {noun}" + ("" if value == 1 else "s")


def byte_size(count_bytes: float) -> str:
    """Return a size, rounded to three digits, in B, kB, MB, GB, TB or PB.

    The units are powers of 1000.
    """
    value, unit = count_bytes, "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return (
        f"{value:,.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.3g} {unit}"
    )


def iso_time(unix_ms: int) -> str:
    """Return a time, Unix ms, as ISO 8601 in UTC with milliseconds."""
    return _formatted(unix_ms, f"%Y-%m-%dT%H:%M:%S.{unix_ms % 1000:03}Z")


def utc_time(unix_ms: int) -> str:
    """Return a time, Unix ms, as UTC date and time to the second."""
    return _formatted(unix_ms, "%Y-%m-%d %H:%M:%S UTC")


def time_of_day(unix_ms: int) -> str:
    """Return a time, Unix ms, as "HH:MM" in UTC."""
    return _formatted(unix_ms, "%H:%M")


def day_and_month(unix_ms: int) -> str:
    """Return a time, Unix ms, as "24 Nov" in UTC."""
    return _formatted(unix_ms, "%d %b")


def clock_time(unix_ms: int) -> str:
    """Return a time, Unix ms, as "HH:MM:SS" in UTC."""
    return _formatted(unix_ms, "%H:%M:%S")


def _formatted(unix_ms: int, form: str) -> str:
    try:
        time = datetime.fromtimestamp(unix_ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{unix_ms} ms"
    return f"{time:{form}}"
