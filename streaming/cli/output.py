"""What the commands leave behind and say: JSON files, times, others' text, progress."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from sds_core.times import shown_time as shown_time  # Used by all commands.
from streaming.cli.log import logger
from streaming.files import write_atomically

_SAY_EVERY_S = 10.0


class _HasTime(Protocol):
    @property
    def timestamp_ms(self) -> int: ...


_Timed = TypeVar("_Timed", bound=_HasTime)


def write_json(document: Any, path: Path, what: str) -> None:
    """Write a document with sorted keys, whole or not at all, and say so.

    Args:
        document: Of JSON's own values.
        path: Where to.
        what: It is, for the reader.

    Raises:
        click.ClickException: It cannot be written.
    """
    text = json.dumps(document, indent=2, sort_keys=True)
    try:
        write_atomically(path, text + "\n")
    except OSError as error:
        message = f"the {what} cannot be written to {path}: {error.strerror}"
        raise click.ClickException(message) from error
    click.echo(f"{what} in {path}")


def wall_ms() -> int:
    """Wall time now, Unix ms."""
    return time.time_ns() // 1_000_000


def plain(text: str) -> str:
    """Text of strangers in one line.

    Control characters and changes of text direction are written as escapes: they
    could otherwise make the line read as something else.
    """
    return repr(text)[1:-1]


def told(records: Iterable[_Timed], done: str) -> Iterator[_Timed]:
    """Say now and then, in the log, how far some long work is.

    Args:
        records: What is worked on, in about the order of time.
        done: What is done with each, such as "read".
    """
    said_s = time.monotonic()
    for number, record in enumerate(records):
        if time.monotonic() - said_s >= _SAY_EVERY_S:
            said_s = time.monotonic()
            at = shown_time(record.timestamp_ms)
            logger.info("%s records %s, up to %s", f"{number:,}", done, at)
        yield record
