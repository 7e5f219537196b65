"""Prints one dead letter, and what to do about it."""

from __future__ import annotations

from collections.abc import Collection

import click

from connectors.kafka.dead_letter_cut import is_whole
from connectors.kafka.dead_letter_reader import (
    DeadLetterReader,
    StoredLetter,
    described,
)
from connectors.kafka.record_source import RecordSource, read_source
from connectors.kafka.settings import KafkaSettings, TopicMissing
from sds_core.observer.record import RawRecord
from sds_core.text import printable
from sds_core.wire import Reason
from streaming.cli.exit_codes import ExitCode
from streaming.cli.inspection import inspect_record
from streaming.cli.inspection_text import inspection_facts, print_facts
from streaming.cli.output import print_json, wall_ms

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


def print_letter(
    kafka: KafkaSettings, topic: str, source: RecordSource, as_json: bool
) -> None:
    """Print the dead letter of a source.

    Raises:
        click.UsageError: No dead letter has the source.
        click.exceptions.Exit: The record still cannot be used.
    """
    reader = DeadLetterReader(kafka, topic)
    letter = next(
        (candidate for candidate in reader if candidate.source == source), None
    )
    if letter is None:
        raise click.UsageError(not_found([source], topic))
    record = whole_record(kafka, letter)
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


def whole_record(kafka: KafkaSettings, letter: StoredLetter) -> RawRecord | None:
    """Return the whole record of a dead letter, from its topic if the letter is cut.

    Returns None if the topic has lost the record, or has another record in its place.
    """
    if letter.is_whole:
        return letter.record
    try:
        record = read_source(kafka, letter.source)
    except TopicMissing:
        return None
    return record if record and is_whole(record, letter.cuts) else None


def not_found(sources: Collection[RecordSource], topic: str) -> str:
    """Return the message for sources that have no dead letter in the topic."""
    return f"{topic} holds no dead letter of {', '.join(map(str, sources))}"
