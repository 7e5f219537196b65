"""Copies undecodable records whole to the dead-letter topic (docs/records.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.producer.future import FutureRecordMetadata

from connectors.kafka.clients import (
    abandon,
    failure,
    kafka_python_options,
    wait_for_acknowledgements,
)
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.record_source import RecordSource
from connectors.kafka.settings import (
    DEAD_LETTER_TOPIC,
    MAX_MESSAGE_BYTES,
    Client,
    KafkaSettings,
    RecordsLost,
)
from connectors.kafka.topics import ensure_topic
from sds_core.observer.dead_letter_view import DeadLetter
from sds_core.observer.record import RawRecord, header_name_bytes
from sds_core.text import decode_text
from sds_core.wire import Reason

REASON_HEADER = "dead-letter-reason"
SOURCE_HEADER = "dead-letter-source"
SIZE_HEADER = "dead-letter-size"
"""Headers of a dead letter in addition to those of its record (docs/records.md)."""

_TOPIC = {
    # The broker must neither delete dead letters for old event times nor refuse future
    # ones.
    "retention.ms": "-1",
    "retention.bytes": str(1024**3),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}
_NEARBY = 100
"""Offsets at most this far apart are read as one range."""


class DeadLetterWriter:
    """Re-reads undecodable records and writes them to the dead-letter topic.

    Duplicates after a crash share their ``dead-letter-source``.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        client: Client = Client.CONFLUENT,
        topic: str = DEAD_LETTER_TOPIC,
    ) -> None:
        self._settings = settings
        self._client = client
        self._topic = topic
        self._producer: KafkaProducer | None = None

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Copy the records; all are acknowledged when this returns.

        A record that retention has already removed is not copied, but stays counted.

        Raises:
            KafkaUnreachable: No broker answered.
        """
        wanted = {(letter.partition, letter.offset): letter for letter in letters}
        try:
            producer = self._connected()
            sent = [
                self._send(producer, record, wanted[record.partition, record.offset])
                for record in self._read(sorted(wanted))
                if (record.partition, record.offset) in wanted
            ]
            wait_for_acknowledgements(producer, sent)
        except KafkaError as error:
            raise failure(self._settings, error) from error

    def close(self) -> None:
        """Close the producer without waiting for unacknowledged records."""
        if self._producer is not None:
            abandon(self._producer)
            self._producer = None

    def _connected(self) -> KafkaProducer:
        if self._producer is None:
            ensure_topic(self._settings, self._topic, configuration=_TOPIC)
            self._producer = KafkaProducer(
                **kafka_python_options(self._settings),
                acks="all",
                max_request_size=MAX_MESSAGE_BYTES,
            )
        return self._producer

    def _read(self, offsets: Sequence[tuple[int, int]]) -> Iterator[RawRecord]:
        for wanted in _ranges(offsets):
            try:
                for records in fetch(self._client, self._settings, [wanted]):
                    yield from records
            except RecordsLost:
                continue

    def _send(
        self, producer: KafkaProducer, record: RawRecord, letter: DeadLetter
    ) -> FutureRecordMetadata:
        source = RecordSource(self._settings.topic, record.partition, record.offset)
        headers = [
            # The client cannot send a header without a value. Other clients, and so
            # the programs of others, could not read a name that is not UTF-8.
            *(
                (decode_text(header_name_bytes(name)), value or b"")
                for name, value in record.headers
            ),
            (REASON_HEADER, letter.reason.encode()),
            (SOURCE_HEADER, str(source).encode()),
        ]
        value = record.value
        if letter.reason == Reason.TOO_LARGE:
            headers.append((SIZE_HEADER, str(len(value or b"")).encode()))
            value = b""
        elif record.key is None:
            # The client cannot send a record without key and value.
            value = value or b""
        return producer.send(
            self._topic,
            key=record.key,
            value=value,
            headers=headers,
            timestamp_ms=record.timestamp_ms,
        )


def _ranges(offsets: Sequence[tuple[int, int]]) -> Iterator[OffsetRange]:
    """Return few ranges that hold all the offsets, which are sorted by partition."""
    for partition, pairs in groupby(offsets, key=lambda pair: pair[0]):
        first: int | None = None
        last = -1
        for _, offset in pairs:
            if first is not None and offset - last > _NEARBY:
                yield OffsetRange(partition, first, last + 1)
                first = None
            first = offset if first is None else first
            last = offset
        if first is not None:
            yield OffsetRange(partition, first, last + 1)
