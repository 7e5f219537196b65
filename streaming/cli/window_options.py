"""Options that limit the times of records to read, or of messages to audit."""

from __future__ import annotations

from typing import NamedTuple

import click

from sds_core.prolly.item import TAIL_TIMESTAMP_NS
from sds_core.text import iso_time
from streaming.cli.settings import Decorator, Panel, option_group, setting
from streaming.cli.values import Duration, Time
from streaming.settings import Window

ALL_TIMES = Window(-(2**63), 2**63 - 1)
"""The range of all times that a Kafka record can have."""


def window_options(*, required: bool) -> Decorator:
    """Add ``--from`` and ``--to``, from which the command gets ``window``.

    For an omitted option, ``window`` has the bound of `ALL_TIMES`.
    """
    options = (
        setting(
            "--from",
            "first_ms",
            type=Time(),
            required=required,
            help="Earliest time of the records to read, inclusive.",
        ),
        setting(
            "--to",
            "last_ms",
            type=Time(),
            required=required,
            help="Latest time of the records to read, inclusive.",
        ),
    )
    return option_group("window", options, _window, panel=Panel.TIME)


def _window(first_ms: int | None, last_ms: int | None) -> Window:
    window = Window(
        ALL_TIMES.first_ms if first_ms is None else first_ms,
        ALL_TIMES.last_ms if last_ms is None else last_ms,
    )
    if window.first_ms > window.last_ms:
        message = (
            f"--from {iso_time(window.first_ms)} is later than "
            f"--to {iso_time(window.last_ms)}: give an earlier --from"
        )
        raise click.UsageError(message)
    return window


NS_PER_MS = 1_000_000


class NothingToCompare(Exception):
    """No message can be compared yet: all messages from `from_ms` on are too young.

    `end_ms` is now minus ``--settle``, Unix ms.
    """

    def __init__(self, from_ms: int, end_ms: int) -> None:
        super().__init__(
            f"nothing can be compared yet, because --from {iso_time(from_ms)} is not "
            f"earlier than now minus --settle ({iso_time(end_ms)}): repeat the audit "
            "later, or give an earlier --from"
        )


class AuditSpan(NamedTuple):
    """An audit compares the messages whose sender's time is in this span.

    `from_ms` is inclusive, `to_ms` exclusive, both in Unix ms. If `to_ms` is None, the
    span ends `settle_s` seconds before now. If `from_ms` is None, the span is `last_s`
    seconds long.
    """

    from_ms: int | None
    to_ms: int | None
    last_s: float
    settle_s: float

    def bounds_ns(self, now_ms: int) -> tuple[int, int]:
        """Return begin (inclusive) and end (exclusive) of the span, in Unix ns.

        Both are times that a message can have. Such times fit into 64 bits, as peers
        and nodes require.

        Raises:
            NothingToCompare: The span does not begin before `settle_s` seconds ago.
        """
        to_ms = self.to_ms
        if to_ms is None:
            to_ms = now_ms - round(self.settle_s * 1000)
        from_ms = self.from_ms
        if from_ms is None:
            from_ms = to_ms - round(self.last_s * 1000)
        if from_ms >= to_ms:
            raise NothingToCompare(from_ms, to_ms)
        latest_ns = TAIL_TIMESTAMP_NS
        return (
            min(max(1, from_ms * NS_PER_MS), latest_ns - 1),
            min(max(2, to_ms * NS_PER_MS), latest_ns),
        )


def _span(
    from_ms: int | None, to_ms: int | None, last: float, settle: float
) -> AuditSpan:
    if from_ms is not None and to_ms is not None and from_ms >= to_ms:
        message = (
            f"--from {iso_time(from_ms)} is not earlier than --to {iso_time(to_ms)}: "
            "give an earlier --from"
        )
        raise click.UsageError(message)
    return AuditSpan(from_ms, to_ms, last, settle)


span_options = option_group(
    "span",
    (
        setting(
            "--from",
            "from_ms",
            type=Time(),
            help="Compare messages whose sender's time is this time or later; by "
            "default, --to minus --last.",
        ),
        setting(
            "--to",
            "to_ms",
            type=Time(),
            help="Compare messages whose sender's time is before this time; by "
            "default, now minus --settle.",
        ),
        setting(
            "--last",
            type=Duration("s", 1),
            default=3_600.0,
            help="Length of the compared window if --from is omitted.",
        ),
        setting(
            "--settle",
            type=Duration("s", 0),
            default=60.0,
            help="Minimum age of the messages to compare if --to is omitted.",
        ),
    ),
    _span,
    panel=Panel.TIME,
)
"""Adds the options of an audit's span; the command gets ``span``, an `AuditSpan`."""
