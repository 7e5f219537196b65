"""Text and times in words, for terminal, log and page alike.

Ids and messages come from strangers. `printable` makes them safe to stand in a line;
escaping for HTML is left to the templates.
"""

from __future__ import annotations

from datetime import UTC, datetime


def printable(text: str) -> str:
    r"""Return the text with every character that cannot be printed as an escape.

    Line ends, control characters and changes of text direction become escapes such as
    ``\n`` or ``\u202e``: a stranger could use them to make a line read as another one.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )


def one_line(text: str) -> str:
    """Return the text with each run of white space as one space."""
    return " ".join(text.split())


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters of the text: its beginning, "…" and its end.

    The end stays because long ids often share their beginning.
    """
    if len(text) <= limit:
        return text
    tail = limit // 3
    return text[: limit - tail - 1] + "…" + text[-tail:]


def decode_text(value: bytes) -> str:
    r"""Decode UTF-8; each byte that is not UTF-8 becomes an escape such as ``\xff``."""
    return value.decode(errors="backslashreplace")


def number(value: int) -> str:
    """Return 12345 as "12,345"."""
    return f"{value:,}"


def counted(value: int, noun: str) -> str:
    """Return a number with a regular noun: "1 channel", "2 channels"."""
    return f"{number(value)} {noun}" + ("" if value == 1 else "s")


def iso_time(unix_ms: int) -> str:
    """Return a time, Unix ms, as ISO 8601 in UTC with milliseconds.

    A time outside the years 1 to 9999 is returned as its number, "5 ms".
    """
    return _formatted(unix_ms, f"%Y-%m-%dT%H:%M:%S.{unix_ms % 1000:03}Z")


def utc_time(unix_ms: int) -> str:
    """Return a time, Unix ms, as date and time in UTC, to the second.

    A time outside the years 1 to 9999 is returned as its number, "5 ms".
    """
    return _formatted(unix_ms, "%Y-%m-%d %H:%M:%S UTC")


def time_of_day(unix_ms: int) -> str:
    """Return a time, Unix ms, as hours and minutes in UTC; see `utc_time`."""
    return _formatted(unix_ms, "%H:%M")


def _formatted(unix_ms: int, form: str) -> str:
    try:
        time = datetime.fromtimestamp(unix_ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{unix_ms} ms"
    return f"{time:{form}}"
