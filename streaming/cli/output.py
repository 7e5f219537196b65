"""What the commands leave behind, JSON files, and how they tell the time."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from streaming.files import write_atomically


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


def shown_time(unix_ms: int) -> str:
    """A time, Unix ms, to the millisecond in UTC, as ISO 8601 has it."""
    whole = datetime.fromtimestamp(unix_ms // 1000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{unix_ms % 1000:03}Z"


def wall_ms() -> int:
    """Wall time now, Unix ms."""
    return time.time_ns() // 1_000_000
