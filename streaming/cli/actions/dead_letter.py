"""Lists, prints and replays dead letters."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from connectors.kafka.dead_letter_cut import is_whole
from connectors.kafka.dead_letter_reader import (
    DeadLetterReader,
    StoredLetter,
    described,
)
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.producer import (
    Acknowledgements,
    target_partition,
    topic_record,
    write,
)
from connectors.kafka.record_source import RecordSource, read_source
from connectors.kafka.settings import KafkaSettings, TopicMissing
from sds_core.observer.judgement import Dead, judge
from sds_core.observer.record import RawRecord
from sds_core.text import counted, decode_text, iso_time, number, printable
from sds_core.wire import Reason
from streaming.cli.exit_codes import ExitCode
from streaming.cli.inspection import inspect_record
from streaming.cli.inspection_text import inspection_facts, print_facts
from streaming.cli.log import logger
from streaming.cli.output import print_json, wall_ms
from streaming.cli.signals import end_requested

ADVICE = {
    Reason.EMPTY_VALUE: "fix the tap: a frame has bytes, and a heartbeat has the "
    "header kind; there is nothing to replay",
    Reason.TOO_LARGE: "check what the tap writes: no Waku node relays a message of "
    "this size",
    Reason.PROTOBUF_ERROR: "check that the record is SDS: messages of other "
    "applications and encrypted messages are not; limit the tap to the content "
    "topics of SDS",
    Reason.NO_MESSAGE_ID: "check that the record is SDS; if it is, its sender's "
    "library omits the id, and no participant can refer to the message",
    Reason.NEITHER_LAMPORT_NOR_CONTENT: "check that the record is SDS; if it is, its "
    "sender's library sends messages without timestamp and content",
    Reason.NO_CHANNEL: "check that the record is SDS; if it is, its sender's library "
    "omits the channel, and no receiver accepts the message",
    Reason.CHANNEL_MISMATCH: "fix the tap: the key of a record is the channel in the "
    "frame, or empty",
    Reason.FUTURE_TIMESTAMP: "correct the clock of the tap or of this machine; after "
    "the time of the record, you can replay it",
    Reason.BAD_HEADER: "fix the tap: docs/records.md does not allow the header",
    Reason.NAME_TOO_LONG: "find out who writes this name: no library does; names of "
    "taps, channels and participants have at most 512 characters",
    Reason.MVDS_ERROR: "check that the record is MVDS: its header protocol says so, "
    "but its value is no payload; the monitor does not read encrypted payloads",
}
"""Reason -> what to do about it; see docs/dead-letters.md."""

_Wanted = str | frozenset[RecordSource] | None
"""Which dead letters to replay: those with a reason, those with some sources, or all.

None means all.
"""

_Sent = tuple[RecordSource, RawRecord]


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
            "ignored %s of topic %s, in which the reason or the source of a dead "
            "letter is missing",
            counted(reader.strangers, "record"),
            dead_letter_topic,
        )
    _print_list(list(reversed(newest)), as_json)
    if not as_json:
        click.echo(_summary(counts, len(newest)))
    if counts:
        raise click.exceptions.Exit(ExitCode.FINDING)


def _listed(letter: StoredLetter) -> dict[str, Any]:
    """Return a dead letter as JSON object, without the value, which may be large."""
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


def print_letter(
    kafka: KafkaSettings, dead_letter_topic: str, as_json: bool, source: RecordSource
) -> None:
    """Print the dead letter of the record at `source`.

    If a topic was recreated, several dead letters may have the same source; the newest
    is printed.

    Raises:
        click.UsageError: No dead letter has this source.
    """
    reader = DeadLetterReader(kafka, dead_letter_topic)
    letters = deque((one for one in reader if one.source == source), maxlen=1)
    if not letters:
        raise click.UsageError(_not_found([source], dead_letter_topic))
    letter = letters.pop()
    record = _whole_record(kafka, letter)
    inspection = inspect_record(record or letter.record, wall_ms())
    if record is None:
        inspection["reason"] = letter.reason
        inspection["error"] = (
            f"the dead letter is truncated ({described(letter.cut_sizes)}), and topic "
            f"{printable(source.topic)} no longer has the record"
        )
    known = ADVICE.get(Reason(letter.reason)) if letter.reason in set(Reason) else None
    advice = known or "update the monitor: this version does not know the reason"
    if not inspection["reason"]:
        advice = "it can be used now: replay it"
    if as_json:
        about = {
            "source": str(source),
            "was": letter.reason,
            "advice": advice,
            "cut": letter.cut_sizes,
        }
        print_json(inspection | about)
    else:
        facts = [("dead letter of", str(source)), ("for", printable(letter.reason))]
        if letter.cut_sizes:
            facts.append(("cut in it", described(letter.cut_sizes)))
        print_facts([*facts, *inspection_facts(inspection), ("what to do", advice)])
    if inspection["reason"]:
        raise click.exceptions.Exit(ExitCode.FINDING)


def _whole_record(kafka: KafkaSettings, letter: StoredLetter) -> RawRecord | None:
    """Return the whole record of a dead letter.

    If the dead letter is truncated, the record is read from its source topic. Returns
    None if the source topic no longer has the record, or has another record at its
    offset.
    """
    if letter.is_whole:
        return letter.record
    try:
        record = read_source(kafka, letter.source)
    except TopicMissing:
        return None
    return record if record and is_whole(record, letter.cuts) else None


def _not_found(sources: Collection[RecordSource], topic: str) -> str:
    return f"{topic} holds no dead letter of {', '.join(map(str, sources))}"


@dataclass(slots=True)
class Replay:
    """Writes records of dead letters to the topic `target`.

    If `target` is None, each record is written to the topic from which it came. With
    `force`, the replay also writes records that the monitor still cannot use. `found`
    has the sources of all dead letters that `run` selected. `acknowledged` counts the
    written records.
    """

    kafka: KafkaSettings
    dead_letter_topic: str
    target: str | None
    force: bool
    dry_run: bool
    found: set[RecordSource] = field(default_factory=set)
    refused: int = 0
    acknowledged: Acknowledgements = field(default_factory=Acknowledgements)

    def run(self, selection: _Wanted) -> None:
        """Write the selected dead letters' records, and print what was written.

        A signal ends the reading. All records that were printed are then still written.
        """
        written = 0
        with end_requested(progress=lambda: self.acknowledged.count) as ending:
            reader = DeadLetterReader(self.kafka, self.dead_letter_topic)
            letters = (
                letter
                for letter in takewhile(lambda _: not ending.is_set(), reader)
                if selection is None
                or letter.reason == selection
                or (isinstance(selection, frozenset) and letter.source in selection)
            )
            for target, records in groupby(
                self._usable(letters), lambda pair: self.target or pair[0].topic
            ):
                written += self._write(records, target)
        missing: list[RecordSource] = []
        if ending.is_set():
            logger.warning(
                "a signal stopped the command, possibly before it wrote the last dead "
                "letters"
            )
        elif isinstance(selection, frozenset):
            missing = sorted(selection - self.found)
        if missing:
            logger.warning("%s", _not_found(missing, self.dead_letter_topic))
        verb = "would be written" if self.dry_run else "written"
        click.echo(
            f"{counted(written, 'record')} {verb}, {number(self.refused)} refused"
        )
        if self.refused or missing:
            raise click.exceptions.Exit(ExitCode.FINDING)

    def _usable(self, letters: Iterable[StoredLetter]) -> Iterator[_Sent]:
        for letter in letters:
            self.found.add(letter.source)
            record = _whole_record(self.kafka, letter)
            if record is None:
                self.refused += 1
                logger.warning(
                    "%s is refused: the dead letter is truncated (%s), and topic %s "
                    "no longer has the original record",
                    letter.source,
                    described(letter.cut_sizes),
                    printable(letter.source.topic),
                )
                continue
            record = _marked(record)
            judged = judge(record, wall_ms())
            if isinstance(judged, Dead) and not self.force:
                self.refused += 1
                why = printable(judged.explanation)
                logger.warning("%s refused: %s: %s", letter.source, judged.reason, why)
                continue
            yield letter.source, record

    def _write(self, records: Iterable[_Sent], topic: str) -> int:
        printed = _printed(records, topic, self.dry_run)
        if self.dry_run:
            return sum(1 for _ in printed)
        settings = replace(self.kafka, topic=topic)
        with closing(TopicOffsets(settings)) as offsets:
            partitions = len(offsets.partitions())
        placed = (topic_record(r, target_partition(r, partitions)) for r in printed)
        before = self.acknowledged.count
        return write(placed, settings, acknowledged=self.acknowledged) - before


def _marked(record: RawRecord) -> RawRecord:
    """Return the record with its header `source` set to `replay`."""
    headers = [(name, value) for name, value in record.headers if name != "source"]
    return record._replace(headers=(*headers, ("source", b"replay")))


def _printed(
    records: Iterable[_Sent], topic: str, dry_run: bool
) -> Iterator[RawRecord]:
    verb = "would go" if dry_run else "goes"
    for source, record in records:
        click.echo(f"{source} {verb} to {topic}")
        yield record
