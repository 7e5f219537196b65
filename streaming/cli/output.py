"""Outputs of commands (JSON, pages, and progress of long work), and wall time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from sds_core.text import iso_time
from sds_core.times import with_utc
from streaming.cli.exit_codes import Failed
from streaming.cli.log import logger
from streaming.damage import write_atomically

_PROGRESS_EVERY_S = 10.0


class _HasTime(Protocol):
    @property
    def timestamp_ms(self) -> int: ...


_Timed = TypeVar("_Timed", bound=_HasTime)


def write_json(document: Any, path: Path, what: str) -> None:
    """Write a document with sorted keys, completely or not at all; print the path.

    Raises:
        click.ClickException: The file cannot be written; the error calls the file
            `what`.
    """
    text = json.dumps(document, indent=2, sort_keys=True)
    try:
        write_atomically(path, text + "\n")
    except OSError as error:
        message = f"the {what} cannot be written to {path}: {error.strerror}"
        raise Failed(message) from error
    click.echo(f"{what} in {path}")


def check_page(path: Path) -> None:
    """Check before long work that `write_page` can write a file.

    Raises:
        click.UsageError: The parent is no directory, or is not writable.
    """
    # `write_page` creates missing directories.
    parent = next(one for one in path.absolute().parents if one.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        message = f"--html: {path} cannot be written: {parent} is no writable directory"
        raise click.UsageError(message)


def write_page(html: str, path: Path) -> None:
    """Write a page, completely or not at all, and print the path.

    Raises:
        click.UsageError: The file cannot be written.
    """
    try:
        write_atomically(path, html)
    except OSError as error:
        message = f"--html: {path} cannot be written: {error.strerror}"
        raise click.UsageError(message) from error
    click.echo(f"report in {path}", err=True)


def print_json(document: Any) -> None:
    """Print a document in one line, with sorted keys, and with times also as text."""
    click.echo(json.dumps(with_utc(document), sort_keys=True))


def wall_ms() -> int:
    """Return wall time, Unix ms."""
    return time.time_ns() // 1_000_000


def with_progress(
    records: Iterable[_Timed], count: Callable[[], int] | None = None
) -> Iterator[_Timed]:
    """Yield records, which the caller writes; log their number every 10 seconds.

    The records are roughly in order of time. If `count` is given, it returns the
    number to log; by default, yielded records are counted.
    """
    logged_s = time.monotonic()
    for number, record in enumerate(records):
        if time.monotonic() - logged_s >= _PROGRESS_EVERY_S:
            logged_s = time.monotonic()
            at = iso_time(record.timestamp_ms)
            finished = number if count is None else count()
            logger.info("%s records written, up to record time %s", f"{finished:,}", at)
        yield record
