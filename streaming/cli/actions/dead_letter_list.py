"""Lists dead letters."""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from connectors.kafka.dead_letter_reader import (
    DeadLetterReader,
    StoredLetter,
    described,
)
from connectors.kafka.settings import KafkaSettings, TopicMissing
from sds_core.text import counted, decode_text, iso_time, printable
from streaming.cli import FINDING
from streaming.cli.log import logger
from streaming.cli.output import print_json


class LetterFilter(NamedTuple):
    """Which dead letters to list; None stands for all.

    Attributes:
        reason: Only those with this reason.
        channel: Only those whose key is this channel.
        since_ms: Only those whose record has this time, Unix ms, or a later one.
    """

    reason: str | None
    channel: str | None
    since_ms: int | None

    def matches(self, letter: StoredLetter) -> bool:
        """Return whether the dead letter is one of these."""
        record = letter.record
        return (
            self.reason in (None, letter.reason)
            and (self.channel is None or record.key == self.channel.encode())
            and (self.since_ms is None or record.timestamp_ms >= self.since_ms)
        )


class _Listed(NamedTuple):
    """A dead letter in a list, without its value.

    Attributes:
        source: Place of its record, TOPIC:PARTITION:OFFSET.
        reason: Why it could not be decoded.
        timestamp_ms: Time of the record, Unix ms.
        key: Key of the record, bytes that are not UTF-8 as escapes; None if it has no
            key.
        size_bytes: Size of the value.
        cut: Parts of the record that the dead letter does not hold whole, and their
            sizes in bytes.
    """

    source: str
    reason: str
    timestamp_ms: int
    key: str | None
    size_bytes: int
    cut: dict[str, int]


def list_letters(
    kafka: KafkaSettings, topic: str, selection: LetterFilter, limit: int, as_json: bool
) -> None:
    """Print dead letters, the one written last first.

    Args:
        kafka: Cluster.
        topic: Topic of the dead letters.
        selection: Selected dead letters.
        limit: Most dead letters to print.
        as_json: Whether to print JSON.

    Raises:
        click.exceptions.Exit: There are dead letters.
    """
    reader = DeadLetterReader(kafka, topic)
    counts: Counter[str] = Counter()
    newest: deque[_Listed] = deque(maxlen=limit)
    try:
        for letter in reader:
            if selection.matches(letter):
                counts[letter.reason] += 1
                newest.append(_listed(letter))
    except TopicMissing as error:
        logger.warning("%s", error)
    if reader.strangers:
        logger.warning(
            "%s of %s without reason or source: no dead letters",
            counted(reader.strangers, "record"),
            topic,
        )
    _print_list(list(reversed(newest)), as_json)
    if not as_json:
        click.echo(_summary(counts, len(newest)))
    if counts:
        raise click.exceptions.Exit(FINDING)


def _listed(letter: StoredLetter) -> _Listed:
    record = letter.record
    key = record.key
    return _Listed(
        str(letter.source),
        letter.reason,
        record.timestamp_ms,
        None if key is None else decode_text(key),
        len(record.value or b"") if letter.size_bytes is None else letter.size_bytes,
        letter.cut_sizes,
    )


def _print_list(listed: list[_Listed], as_json: bool) -> None:
    console = Console()
    if as_json:
        for one in listed:
            print_json(one._asdict())
        return
    rows = [
        (
            iso_time(one.timestamp_ms),
            one.source,
            printable(one.reason),
            f"{one.size_bytes:,} bytes",
            "no key" if one.key is None else f"key {printable(one.key)}",
            *((f"cut: {described(one.cut)}",) if one.cut else ()),
        )
        for one in listed
    ]
    if not console.is_terminal:
        for row in rows:
            click.echo("; ".join(row))
        return
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    console.print(table)


def _summary(counts: Counter[str], listed: int) -> str:
    total = counts.total()
    if not total:
        return "no dead letters"
    by_reason = ", ".join(f"{printable(r)} {n:,}" for r, n in counts.most_common())
    cut = f"; the last {listed:,} are listed" if listed < total else ""
    return f"{counted(total, 'dead letter')}: {by_reason}{cut}"
