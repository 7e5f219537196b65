"""Types for the values of command-line options."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from sds_core.durations import UNITS_MS, Unit, duration_text, parse_duration_ms
from sds_core.text import shown

STDIN = "-"
"""File name that means standard input."""

FILE = click.Path(dir_okay=False, path_type=Path)
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_GREATEST = 2**63 - 1
"""The greatest integer that 64 bits hold."""


_LONGEST_DAYS = 100_000
"""The longest duration, in days. A time that is much further away would exceed 64 bits,
in ns, or the range of dates."""


class Text(click.ParamType[str]):
    """A text in UTF-8, the only form that Kafka, DuckDB and HTTP accept.

    The command line and the environment may contain other bytes. Python passes these
    bytes as characters that cannot be encoded.
    """

    name = "text"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the text. The error does not quote it, because it may be a secret."""
        text = str(click.STRING.convert(value, param, ctx))
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail("the text is not UTF-8", param, ctx)
        return text


TEXT = Text()


class Directory(click.Path):
    """A directory, which need not exist.

    A URL is refused. Without this check, it would be used as a relative path, because
    `Path` turns its two slashes into one.
    """

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the path."""
        path = super().convert(value, param, ctx)
        if re.match(r"[a-z][a-z0-9]+:/", str(path), re.IGNORECASE):
            message = (
                f"{shown(str(path))} is a URL, but a directory is needed: mount a "
                "shared file system, and give the path of its mount point "
                "(docs/scaling.md)"
            )
            self.fail(message, param, ctx)
        return path


DIRECTORY = Directory()


class MemberOf(click.Choice[enum.StrEnum]):
    """A choice between the values of a `StrEnum`; the result is the chosen member."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        """Return the text for a member: its value. Click itself would use its name."""
        return str(choice)


class Integer(click.IntRange):
    """An integer in a range. If no `max` is given, it is at most `_GREATEST`."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the integer."""
        number = int(super().convert(value, param, ctx))
        if number > _GREATEST:
            message = f"{number} is too large: use at most {_GREATEST:,}"
            self.fail(message, param, ctx)
        return number


class Number(click.FloatRange):
    """A finite number in a range."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{shown(value)} is not a finite number", param, ctx)
        return number


class Duration(Number):
    """A duration such as 5m, from `min` to `max`; see `sds_core.durations`.

    `plain` is the unit of the bounds, of the result, and of an input without a unit. If
    `is_whole`, the result is an integer. If `min_open`, `min` itself is not allowed. If
    no `max` is given, the duration is at most `_LONGEST_DAYS`.
    """

    name = "duration"

    def __init__(
        self,
        plain: Unit,
        min: float | None = None,  # noqa: A002 - click's own word
        max: float | None = None,  # noqa: A002
        *,
        min_open: bool = False,
        is_whole: bool = False,
    ) -> None:
        super().__init__(min, max, min_open)
        self.plain = plain
        self._is_whole = is_whole

    def text(self, value: float) -> str:
        """Return a duration as text; `value` has the unit `plain`."""
        return duration_text(round(value * UNITS_MS[self.plain], 6))

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the duration as a number, in the unit `plain`."""
        try:
            number = parse_duration_ms(str(value), self.plain) / UNITS_MS[self.plain]
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if self._is_whole and not number.is_integer():
            message = f"{self.text(number)} is not a whole multiple of 1{self.plain}"
            self.fail(message, param, ctx)
        try:
            super().convert(number, param, ctx)
        except click.BadParameter:
            message = (
                f"{self.text(number)} is not in the range {self._describe_range()}"
            )
            self.fail(message, param, ctx)
        longest = _LONGEST_DAYS * UNITS_MS["d"] / UNITS_MS[self.plain]
        if number > longest:
            message = (
                f"{self.text(number)} is too long: use at most {self.text(longest)}"
            )
            self.fail(message, param, ctx)
        return int(number) if self._is_whole else number

    def _describe_range(self) -> str:
        plain = super()._describe_range()
        return re.sub(r"[\d.]+", lambda bound: self.text(float(bound[0])), plain)


class Parsed(click.ParamType[Any]):
    """A `Text` that `parse` converts.

    For an invalid text, `parse` raises ValueError.
    """

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Parse a text; return any other value unchanged: it is already parsed."""
        if not isinstance(value, str):
            return value
        text = TEXT.convert(value, param, ctx)
        try:
            return self._parse(text)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Time(Parsed):
    """A time, which is converted to Unix ms, or one of `words`, which stays a text."""

    def __init__(self, *words: str) -> None:
        super().__init__("|".join([*words, "TIME"]), partial(_parse_time, words))


def _parse_time(words: Sequence[str], text: str) -> str | int:
    if text in words:
        return text
    try:
        if text.isdigit():
            time = datetime.fromtimestamp(int(text) / 1000, UTC)
        else:
            time = datetime.fromisoformat(text).astimezone()
        unix_ms = round(time.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        unix_ms = -1
    # -1 means an invalid text. Times before 1970 are not accepted either.
    if unix_ms < 0:
        known = ", ".join([*words, "a time such as 2026-11-21T08:00:00Z"])
        message = f"{shown(text)} is not a valid time: use {known} or Unix milliseconds"
        raise ValueError(message)
    return unix_ms
