"""Lists dead letters."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

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
from streaming.cli.exit_codes import ExitCode
from streaming.cli.log import logger
from streaming.cli.output import print_json


def list_letters(
    kafka: KafkaSettings,
    dead_letter_topic: str,
    reason: str | None,
    channel: str | None,
    since_ms: int | None,
    limit: int,
    as_json: bool,
) -> None:
    """Print at most `limit` of the selected dead letters, the newest first."""
    key = None if channel is None else channel.encode()
    reader = DeadLetterReader(kafka, dead_letter_topic)
    counts: Counter[str] = Counter()
    newest: deque[dict[str, Any]] = deque(maxlen=limit)
    try:
        for letter in reader:
            if (
                reason in (None, letter.reason)
                and key in (None, letter.record.key)
                and (since_ms is None or letter.record.timestamp_ms >= since_ms)
            ):
                counts[letter.reason] += 1
                newest.append(_listed(letter))
    except TopicMissing as error:
        logger.warning("%s", error)
    if reader.strangers:
        logger.warning(
            "%s of topic %s are no dead letters, because the reason or the source is "
            "missing",
            counted(reader.strangers, "record"),
            dead_letter_topic,
        )
    _print_list(list(reversed(newest)), as_json)
    if not as_json:
        click.echo(_summary(counts, len(newest)))
    if counts:
        raise click.exceptions.Exit(ExitCode.FINDING)


def _listed(letter: StoredLetter) -> dict[str, Any]:
    """Return the JSON object of a dead letter without its value, which may be large."""
    record, size = letter.record, letter.size_bytes
    return {
        "source": str(letter.source),
        "reason": letter.reason,
        "timestamp_ms": record.timestamp_ms,
        "key": None if record.key is None else decode_text(record.key),
        "size_bytes": len(record.value or b"") if size is None else size,
        "cut": letter.cut_sizes,
    }


def _print_list(listed: list[dict[str, Any]], as_json: bool) -> None:
    console = Console()
    if as_json:
        for one in listed:
            print_json(one)
        return
    rows = [
        (
            iso_time(one["timestamp_ms"]),
            one["source"],
            printable(one["reason"]),
            f"{one['size_bytes']:,} bytes",
            "no key" if one["key"] is None else f"key {printable(one['key'])}",
            *((f"cut: {described(one['cut'])}",) if one["cut"] else ()),
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
