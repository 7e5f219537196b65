"""Layout of a history on disk: a directory per table and day, with numbered files.

``<table>/day=YYYY-MM-DD/<number>.parquet``. The directories of days are named in Hive's
style, so that other programs can query ``day`` like a column. If a file's name begins
with a dot, the file is unfinished. If a directory's name begins with a dot, the
directory is expired. Unfinished files and expired directories are never read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import TypeVar

LOCK = "lock"
"""Name of the lock file of the process that writes the history."""

_DAY = re.compile(r"day=(\d{4}-\d{2}-\d{2})")
_FILE = re.compile(r"\d{10}\.parquet")
_EPOCH = date(1970, 1, 1)
_DAY_MS = 86_400_000

_Listed = TypeVar("_Listed")


def day_of(unix_ms: int) -> date:
    """Return the UTC day that contains a time."""
    return _EPOCH + timedelta(days=unix_ms // _DAY_MS)


def span_of(day: date) -> range:
    """Return a day's range of times, Unix ms; `stop` is the start of the next day."""
    begin_ms = (day - _EPOCH).days * _DAY_MS
    return range(begin_ms, begin_ms + _DAY_MS)


def day_directory(table: Path, day: date) -> Path:
    """Return the directory for a table's files of one day."""
    return table / f"day={day}"


def file_path(directory: Path, number: int) -> Path:
    """Return the path of a numbered file in the directory of a day."""
    return directory / f"{number:010}.parquet"


def days(table: Path) -> dict[date, Path]:
    """Return a table's directories by day, oldest first; empty if none exists."""
    names = sorted(_names(table, _DAY))
    return {
        date.fromisoformat(name.removeprefix("day=")): table / name for name in names
    }


def files(directory: Path) -> list[Path]:
    """Return the files of a day, oldest first; empty if the directory is missing."""
    return [directory / name for name in sorted(_names(directory, _FILE))]


def settled(listing: Callable[[], _Listed]) -> _Listed:
    """Repeat a listing until two consecutive results are equal; return the last result.

    While another process compacts a day, a single listing can miss rows: the listing
    may contain neither the old files, which are already deleted, nor the new file. The
    next listing then contains the new file, so the two listings differ. Therefore, two
    equal listings miss no rows.
    """
    previous = listing()
    while (current := listing()) != previous:
        previous = current
    return current


def _names(directory: Path, pattern: re.Pattern[str]) -> list[str]:
    try:
        return [p.name for p in directory.iterdir() if pattern.fullmatch(p.name)]
    except FileNotFoundError:
        return []
