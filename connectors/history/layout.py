"""Where the rows of a history lie: a directory per table and day, numbered files.

``<table>/day=YYYY-MM-DD/<number>.parquet``. The names of days are as Hive has them, so
that other programs prune by ``day`` too. What begins with a dot is not there yet, or
not any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import TypeVar

LOCK = "lock"
"""Of the one process that writes."""

_DAY = re.compile(r"day=(\d{4}-\d{2}-\d{2})")
_FILE = re.compile(r"\d{10}\.parquet")
_EPOCH = date(1970, 1, 1)
_DAY_MS = 86_400_000

_Listed = TypeVar("_Listed")


def day_of(unix_ms: int) -> date:
    """The day in UTC."""
    return _EPOCH + timedelta(days=unix_ms // _DAY_MS)


def span_of(day: date) -> range:
    """The milliseconds of a day, Unix ms."""
    begin_ms = (day - _EPOCH).days * _DAY_MS
    return range(begin_ms, begin_ms + _DAY_MS)


def day_directory(table: Path, day: date) -> Path:
    """Where the rows of a day lie."""
    return table / f"day={day}"


def file_path(directory: Path, number: int) -> Path:
    """The file of a number in the directory of a day."""
    return directory / f"{number:010}.parquet"


def days(table: Path) -> dict[date, Path]:
    """The directories of a table by day, in order; empty if there are none."""
    found = {_day(name): table / name for name in _names(table, _DAY)}
    return dict(sorted(found.items()))


def files(directory: Path) -> list[Path]:
    """The files of a day, those written last at the end."""
    return [directory / name for name in sorted(_names(directory, _FILE))]


def settled(listing: Callable[[], _Listed]) -> _Listed:
    """A listing that misses no row while another process puts files together.

    One listing alone may see neither the new file, which came after it had begun, nor
    the old ones, which went before it was there. Two that are the same do not: had a
    new file come during the second, the old ones would be in the first.
    """
    seen = listing()
    while (now := listing()) != seen:
        seen = now
    return now


def _day(name: str) -> date:
    return date.fromisoformat(name.removeprefix("day="))


def _names(directory: Path, pattern: re.Pattern[str]) -> list[str]:
    try:
        return [p.name for p in directory.iterdir() if pattern.fullmatch(p.name)]
    except FileNotFoundError:
        return []
