"""Dead letters and their records, for the commands about them."""

from __future__ import annotations

from collections.abc import Collection

from connectors.kafka.dead_letter_cut import is_whole
from connectors.kafka.dead_letter_reader import StoredLetter
from connectors.kafka.record_source import RecordSource, read_source
from connectors.kafka.settings import Client, KafkaSettings, TopicMissing
from sds_core.observer.record import RawRecord


def whole_record(kafka: KafkaSettings, letter: StoredLetter) -> RawRecord | None:
    """Return the whole record of a dead letter.

    Reads it from its topic if the dead letter is cut. Returns None if the topic does
    not hold it any more, or another record in its place.
    """
    if letter.is_whole:
        return letter.record
    try:
        record = read_source(Client.CONFLUENT, kafka, letter.source)
    except TopicMissing:
        return None
    return record if record and is_whole(record, letter.cuts) else None


def not_found(sources: Collection[RecordSource], topic: str) -> str:
    """Return the message for sources that have no dead letter in the topic."""
    return f"{topic} holds no dead letter of {', '.join(map(str, sources))}"
