"""Options for a window of record times."""

from __future__ import annotations

from collections.abc import Callable

import click

from sds_core.text import iso_time
from streaming.cli.settings import Time, option_group, setting
from streaming.settings import Window

ALL_TIMES = Window(-(2**63), 2**63 - 1)
"""Every time that a record of Kafka can have."""


def window_options(
    *, required: bool
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add ``--from`` and ``--to``; the command gets ``window``, a `Window`.

    Args:
        required: Whether both must be given; else the window has no bound where one
            is left out.
    """
    options = (
        setting(
            "--from",
            "first_ms",
            type=Time(),
            required=required,
            help="Earliest time of a record.",
        ),
        setting(
            "--to",
            "last_ms",
            type=Time(),
            required=required,
            help="Latest time of a record.",
        ),
    )
    return option_group("window", options, _window)


def _window(first_ms: int | None, last_ms: int | None) -> Window:
    window = Window(
        ALL_TIMES.first_ms if first_ms is None else first_ms,
        ALL_TIMES.last_ms if last_ms is None else last_ms,
    )
    if window.first_ms > window.last_ms:
        message = (
            f"--from {iso_time(window.first_ms)} is later than "
            f"--to {iso_time(window.last_ms)}"
        )
        raise click.UsageError(message)
    return window
