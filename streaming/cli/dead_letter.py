"""``sds-monitor dead-letter``."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from connectors.kafka.consumer import Client
from connectors.kafka.dead_letter_reader import DeadLetterReader, KeptLetter
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.record_source import RecordSource, parse_source, read_source
from connectors.kafka.rewrite import kept_partition, topic_record
from connectors.kafka.settings import DEAD_LETTER_TOPIC, KafkaSettings, TopicMissing
from connectors.web.words import counted, number
from sds_core.observer.judgement import Dead, judge
from sds_core.observer.record import RawRecord
from sds_core.wire import Reason
from streaming.cli import FINDING
from streaming.cli.inspection import (
    inspect_record,
    inspection_facts,
    show_facts,
)
from streaming.cli.kafka_options import kafka_options
from streaming.cli.log import logger
from streaming.cli.output import plain, shown_time, wall_ms
from streaming.cli.settings import Time, config_option, setting

ADVICE = {
    Reason.EMPTY_VALUE: "mend the tap: a frame has bytes, and a heartbeat has header "
    "kind; there is nothing to replay",
    Reason.TOO_LARGE: "look at what the tap writes: no Waku node relays a message of "
    "this size",
    Reason.PROTOBUF_ERROR: "see whether it is SDS at all: other applications' messages "
    "and encrypted ones are not, narrow the tap to the right content topics",
    Reason.NO_MESSAGE_ID: "see whether it is SDS at all; if it is, its sender's "
    "library leaves out the id, and nobody can refer to the message",
    Reason.NEITHER_LAMPORT_NOR_CONTENT: "see whether it is SDS at all; if it is, its "
    "sender's library sends messages that say nothing",
    Reason.NO_CHANNEL: "see whether it is SDS at all; if it is, its sender's library "
    "leaves out the channel, and no receiver accepts the message",
    Reason.CHANNEL_MISMATCH: "mend the tap: the key of a record is the channel inside "
    "the frame, or nothing",
    Reason.FUTURE_TIMESTAMP: "set the clock of the tap or of this machine; when that "
    "time has come the record can be replayed",
    Reason.BAD_HEADER: "mend the tap: the header is none that docs/records.md allows",
    Reason.MVDS_ERROR: "update the monitor: this version reads no MVDS",
}
"""What to do about each reason; docs/dead-letters.md says more."""


@click.group(
    "dead-letter",
    epilog="Example: sds-monitor dead-letter list --bootstrap localhost:9092",
)
def command() -> None:
    """Look at what could not be decoded, and send back what can be now."""


def _common_options(added: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(
        (
            config_option,
            kafka_options(),
            setting(
                "--dead-letter-topic",
                default=DEAD_LETTER_TOPIC,
                help="Topic of the dead letters.",
            ),
        )
    ):
        added = option(added)
    return added


_reason_option = setting(
    "--reason",
    type=click.Choice([reason.value for reason in Reason]),
    help="Only those of this reason.",
)


class _Source(click.ParamType[RecordSource]):
    """``topic:partition:offset`` as header `dead-letter-source` has it."""

    name = "TOPIC:PARTITION:OFFSET"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> RecordSource:
        """Read it."""
        if isinstance(value, RecordSource):
            return value
        source = parse_source(str(value))
        if source is None:
            self.fail(f"{value!r} is no TOPIC:PARTITION:OFFSET", param, ctx)
        return source


class _Listed(NamedTuple):
    """A dead letter in a list, without its value.

    Attributes:
        source: Where its record lay, as text.
        reason: Why.
        timestamp_ms: Of the record, Unix ms.
        key: Of the record, what is no UTF-8 as escapes; None if it has none.
        size_bytes: Of the value.
    """

    source: str
    reason: str
    timestamp_ms: int
    key: str | None
    size_bytes: int


@command.command(
    "list",
    epilog="Example: sds-monitor dead-letter list --bootstrap localhost:9092 "
    "--reason protobuf_error --since 2026-11-21T08:00:00Z",
)
@_common_options
@_reason_option
@setting("--channel", help="Only those whose key is this channel.")
@setting("--since", type=Time(), help="Only those whose record is of then or later.")
@setting(
    "--limit",
    type=click.IntRange(1),
    default=100,
    help="How many to show; all are counted.",
)
@setting("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_command(
    kafka: KafkaSettings,
    dead_letter_topic: str,
    reason: str | None,
    channel: str | None,
    since: int | None,
    limit: int,
    as_json: bool,
) -> None:
    """List dead letters, written last first; exit code 1 if there are any.

    The same record is shown once, although a crash may have left it twice.
    """
    reader = DeadLetterReader(kafka, dead_letter_topic)
    counts: Counter[str] = Counter()
    newest: deque[_Listed] = deque(maxlen=limit)
    try:
        for letter in reader:
            record = letter.record
            if (
                reason in (None, letter.reason)
                and (channel is None or record.key == channel.encode())
                and (since is None or record.timestamp_ms >= since)
            ):
                counts[letter.reason] += 1
                newest.append(_listed(letter))
    except TopicMissing as error:
        logger.warning("%s", error)
    if reader.strangers:
        logger.warning(
            "%s of %s without reason or source: no dead letters",
            counted(reader.strangers, "record"),
            dead_letter_topic,
        )
    _show_list(list(reversed(newest)), as_json)
    if not as_json:
        click.echo(_summary(counts, len(newest)))
    if counts:
        raise click.exceptions.Exit(FINDING)


@command.command(
    "show",
    epilog="Example: sds-monitor dead-letter show sds.frames:2:1714 "
    "--bootstrap localhost:9092",
)
@_common_options
@setting("--json", "as_json", is_flag=True, help="One JSON object.")
@click.argument(
    "source",
    metavar="SOURCE",
    type=_Source(),
    envvar="SDS_MONITOR_SOURCE",
)
def show_command(
    kafka: KafkaSettings,
    dead_letter_topic: str,
    as_json: bool,
    source: RecordSource,
) -> None:
    """Show the dead letter of SOURCE, what is wrong with it, and what to do.

    SOURCE is TOPIC:PARTITION:OFFSET, as the list gives it. Exit code 1 if the record
    still cannot be used.
    """
    reader = DeadLetterReader(kafka, dead_letter_topic)
    letter = next((one for one in reader if one.source == source), None)
    if letter is None:
        raise click.UsageError(_not_found([source], dead_letter_topic))
    record = _whole_record(kafka, letter)
    found = inspect_record(record or letter.record, wall_ms())
    if record is None:
        found["reason"] = letter.reason
        found["error"] = f"the value had {letter.size_bytes:,} bytes and is gone"
    known = ADVICE.get(Reason(letter.reason)) if letter.reason in set(Reason) else None
    advice = known or "update the monitor: this version does not know the reason"
    if not found["reason"]:
        advice = "it can be used now: replay it"
    if as_json:
        about = {"source": str(source), "was": letter.reason, "advice": advice}
        click.echo(json.dumps(found | about, sort_keys=True))
    else:
        facts = [("dead letter of", str(source)), ("for", plain(letter.reason))]
        show_facts([*facts, *inspection_facts(found), ("what to do", advice)])
    if found["reason"]:
        raise click.exceptions.Exit(FINDING)


@dataclass(slots=True)
class _Outcome:
    """What became of the letters of a replay.

    Attributes:
        found: Sources of those that were meant.
        refused: How many were not sent.
    """

    found: set[RecordSource] = field(default_factory=set)
    refused: int = 0


@command.command(
    "replay",
    epilog="Example: sds-monitor dead-letter replay --bootstrap localhost:9092 "
    "--reason bad_header --dry-run",
)
@_common_options
@_reason_option
@setting("--all", "all_letters", is_flag=True, help="All there are.")
@setting("--topic", help="Write there; to the topic of each source if left out.")
@setting("--force", is_flag=True, help="Write also what still cannot be used.")
@setting(
    "--dry-run", is_flag=True, help="Say what would be written, and write nothing."
)
@click.argument(
    "sources",
    metavar="[SOURCE]...",
    nargs=-1,
    type=_Source(),
    envvar="SDS_MONITOR_SOURCES",
)
def replay_command(
    kafka: KafkaSettings,
    dead_letter_topic: str,
    reason: str | None,
    all_letters: bool,
    topic: str | None,
    force: bool,
    dry_run: bool,
    sources: tuple[RecordSource, ...],
) -> None:
    """Send dead letters back to their topic: those that can be used now.

    Key, value, time and headers are those of the record, with source: replay. Their
    times are old: what lies more than an hour behind the monitor's clock only counts as
    a frame. The dead letters stay where they are, and nothing remembers that they were
    sent: once is enough. Exit code 1 if one was refused or is not there.
    """
    if sum((bool(sources), reason is not None, all_letters)) != 1:
        message = "say which: SOURCE..., or --reason, or --all"
        raise click.UsageError(message)
    wanted = set(sources)
    reader = DeadLetterReader(kafka, dead_letter_topic)
    outcome = _Outcome()
    letters = (
        letter
        for letter in reader
        if all_letters or letter.reason == reason or letter.source in wanted
    )
    usable = _usable(letters, kafka, force, outcome)
    written = 0
    for target, records in groupby(usable, lambda pair: topic or pair[0].topic):
        told = _told(records, target, dry_run)
        if dry_run:
            written += sum(1 for _ in told)
        else:
            settings = replace(kafka, topic=target)
            with closing(TopicOffsets(settings)) as offsets:
                partitions = len(offsets.partitions())
            written += write(_placed(told, partitions), settings)
    missing = sorted(wanted - outcome.found)
    if missing:
        logger.warning("%s", _not_found(missing, dead_letter_topic))
    verb = "would be written" if dry_run else "written"
    click.echo(
        f"{counted(written, 'record')} {verb}, {number(outcome.refused)} refused"
    )
    if outcome.refused or missing:
        raise click.exceptions.Exit(FINDING)


_Sent = tuple[RecordSource, RawRecord]


def _usable(
    letters: Iterable[KeptLetter],
    kafka: KafkaSettings,
    force: bool,
    outcome: _Outcome,
) -> Iterator[_Sent]:
    """The records that can be used now; of the others it is said why not."""
    for letter in letters:
        outcome.found.add(letter.source)
        record = _whole_record(kafka, letter)
        if record is None:
            outcome.refused += 1
            logger.warning("%s refused: its topic has lost the value", letter.source)
            continue
        record = _marked(record)
        now_ms = wall_ms()
        judged = judge(record, now_ms)
        if isinstance(judged, Dead) and not force:
            outcome.refused += 1
            why = plain(judged.explanation)
            logger.warning("%s refused: %s: %s", letter.source, judged.reason, why)
            continue
        yield letter.source, record


def _marked(record: RawRecord) -> RawRecord:
    """The record with `source` = `replay`, and no other source."""
    headers = [(name, value) for name, value in record.headers if name != "source"]
    return record._replace(headers=(*headers, ("source", b"replay")))


def _told(records: Iterable[_Sent], topic: str, dry_run: bool) -> Iterator[RawRecord]:
    verb = "would go" if dry_run else "goes"
    for source, record in records:
        click.echo(f"{source} {verb} to {topic}")
        yield record


def _placed(records: Iterable[RawRecord], partitions: int) -> Iterator[TopicRecord]:
    for record in records:
        yield topic_record(record, kept_partition(record, partitions))


def _whole_record(kafka: KafkaSettings, letter: KeptLetter) -> RawRecord | None:
    """The record with its value, from its topic if the letter has none."""
    if letter.size_bytes is None:
        return letter.record
    try:
        return read_source(Client.CONFLUENT, kafka, letter.source)
    except TopicMissing:
        return None


def _not_found(sources: Collection[RecordSource], topic: str) -> str:
    return f"{topic} holds no dead letter of {', '.join(map(str, sources))}"


def _listed(letter: KeptLetter) -> _Listed:
    record = letter.record
    key = record.key
    return _Listed(
        str(letter.source),
        letter.reason,
        record.timestamp_ms,
        None if key is None else key.decode(errors="backslashreplace"),
        len(record.value or b"") if letter.size_bytes is None else letter.size_bytes,
    )


def _show_list(listed: list[_Listed], as_json: bool) -> None:
    console = Console()
    if as_json:
        for one in listed:
            click.echo(json.dumps(one._asdict(), sort_keys=True))
        return
    rows = [
        (
            shown_time(one.timestamp_ms),
            one.source,
            plain(one.reason),
            f"{one.size_bytes:,} bytes",
            "no key" if one.key is None else f"key {plain(one.key)}",
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


def _summary(counts: Counter[str], shown: int) -> str:
    total = counts.total()
    if not total:
        return "no dead letters"
    by_reason = ", ".join(f"{plain(r)} {n:,}" for r, n in counts.most_common())
    cut = f"; the last {shown:,} are shown" if shown < total else ""
    return f"{counted(total, 'dead letter')}: {by_reason}{cut}"
