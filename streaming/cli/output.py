"""Writes the JSON, the pages and the progress of commands; returns wall time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from connectors.storage.disk import REMEDIES, is_special, with_remedy
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
    """Write a document as JSON with sorted keys, and print the path.

    If the write fails, `path` remains unchanged, unless it is a device or a pipe.
    `what` names the kind of document in the printed line and in the error, such as
    ``report``. For the printed line, see `note_written`.

    Raises:
        click.ClickException: The file cannot be written.
    """
    text = json.dumps(document, indent=2, sort_keys=True)
    try:
        write_atomically(path, text + "\n")
    except OSError as error:
        cause = with_remedy(str(error.strerror))
        message = f"the {what} cannot be written to {path}: {cause}"
        raise Failed(message) from error
    note_written(f"{what} in {path}", path)


def note_written(line: str, path: Path) -> None:
    """Print a line about a written file.

    If the file is special, the line goes to standard error, because `path` may lead to
    standard output.
    """
    click.echo(line, err=is_special(path))


def check_page(path: Path) -> None:
    """Check that `write_page` will be able to write a file; called before long work.

    Raises:
        click.UsageError: The nearest existing parent of `path` is no directory, or is
            not writable. If `path` is special, `path` itself is not writable.
    """
    if is_special(path):
        if not os.access(path, os.W_OK):
            message = (
                f"--html: {path} cannot be written: this user has no write permission"
            )
            raise click.UsageError(message)
        return
    # `write_page` creates missing directories. `Path.exists` would raise an error if
    # this user cannot search a directory.
    parent = next(p for p in path.absolute().parents if os.access(p, os.F_OK))
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        message = (
            f"--html: {path} cannot be written: {parent} is not a writable directory"
        )
        raise click.UsageError(message)


def write_page(html: str, path: Path) -> None:
    """Write a page, and print the path on standard error.

    If the write fails, `path` remains unchanged, unless it is a device or a pipe.

    Raises:
        click.ClickException: The file cannot be written; `Failed` if the disk is full
            or fails.
    """
    try:
        write_atomically(path, html)
    except OSError as error:
        cause = with_remedy(str(error.strerror))
        message = f"--html: {path} cannot be written: {cause}"
        refuse = Failed if error.errno in REMEDIES else click.UsageError
        raise refuse(message) from error
    click.echo(f"report in {path}", err=True)


def print_json(document: Any) -> None:
    """Print a document as JSON in one line, with sorted keys.

    For each time in the document, a field with the time as text is added.
    """
    click.echo(json.dumps(with_utc(document), sort_keys=True))


def wall_ms() -> int:
    """Return wall time, Unix ms."""
    return time.time_ns() // 1_000_000


def with_progress(
    records: Iterable[_Timed], count: Callable[[], int] | None = None
) -> Iterator[_Timed]:
    """Yield records for the caller to write; log every 10 seconds how many are written.

    The log also shows the current record's time, so the records must be roughly in
    order of time. `count` returns the number of written records; by default, each
    yielded record counts as written.
    """
    logged_s = time.monotonic()
    for number, record in enumerate(records):
        if time.monotonic() - logged_s >= _PROGRESS_EVERY_S:
            logged_s = time.monotonic()
            at = iso_time(record.timestamp_ms)
            finished = number if count is None else count()
            logger.info("%s records written, up to record time %s", f"{finished:,}", at)
        yield record
