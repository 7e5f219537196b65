"""Copies undecodable records to the dead-letter topic (docs/records.md)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.producer.future import FutureRecordMetadata

from connectors.kafka.clients import (
    LazyProducer,
    failure,
    kafka_python_options,
    record_refusal,
)
from connectors.kafka.dead_letter_cut import fit
from connectors.kafka.record_source import RecordSource, read_places
from connectors.kafka.settings import (
    DEAD_LETTER_TOPIC,
    MAX_MESSAGE_BYTES,
    Client,
    KafkaSettings,
    RecordRefused,
)
from connectors.kafka.topics import ensure_topic, find_max_message_bytes
from sds_core.observer.dead_letter_view import DeadLetter
from sds_core.observer.record import RawRecord

_log = logging.getLogger("sds-monitor")

REASON_HEADER = "dead-letter-reason"
SOURCE_HEADER = "dead-letter-source"
SIZE_HEADER = "dead-letter-size"
CUT_HEADER = "dead-letter-cut"
"""Names of the headers that a dead letter has in addition to the headers of its record
(docs/records.md)."""

_TOPIC = {
    # The broker must accept and keep dead letters with any event time.
    "retention.ms": "-1",
    "retention.bytes": str(1024**3),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}
_UNKNOWN_LIMIT_BYTES = 1_000_000
"""Maximum size of a dead letter if the topic's limit is unknown, bytes. This size is
below Kafka's default limit."""

_SMALLEST_BYTES = 4_096
"""If Kafka refuses a dead letter, it is cut to at most this size and written again,
bytes."""

_IN_FLIGHT_BYTES = 32 * 1024 * 1024
"""If the sent records exceed this size, bytes, the writer waits for Kafka's answers,
because the client does not limit its buffer."""


class _Sent(NamedTuple):
    record: RawRecord
    letter: DeadLetter
    future: FutureRecordMetadata


class DeadLetterWriter(LazyProducer):
    """Reads undecodable records again, and writes them to the dead-letter topic.

    After a crash, a record may have several dead letters, which have the same header
    ``dead-letter-source``.
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
        self._limit_bytes = _UNKNOWN_LIMIT_BYTES
        self._has_logged = False

    def write(self, letters: Sequence[DeadLetter]) -> int:
        """Copy the records; return the number of dead letters that Kafka refuses.

        If Kafka refuses a dead letter, it is cut to `_SMALLEST_BYTES` and written
        again. Only a second refusal counts. The writer logs only the first refusal that
        counts. When the call returns, Kafka has acknowledged all other dead letters. A
        record that retention has already removed is neither copied nor counted.

        Raises:
            KafkaUnreachable: No broker answered, or the client has no right to write.
        """
        wanted = {(letter.partition, letter.offset): letter for letter in letters}
        try:
            producer = self._connected()
            sent: list[_Sent] = []
            size = unwritten = 0
            for record in read_places(self._settings, wanted, self._client):
                letter = wanted[record.partition, record.offset]
                sent.append(self._send(producer, record, letter, self._limit_bytes))
                size += min(record.size_bytes, self._limit_bytes)
                if size > _IN_FLIGHT_BYTES:
                    unwritten += self._settle(producer, sent)
                    sent, size = [], 0
            return unwritten + self._settle(producer, sent)
        except KafkaError as error:
            raise failure(self._settings, error) from error

    def _connect(self) -> KafkaProducer:
        ensure_topic(self._settings, self._topic, configuration=_TOPIC)
        limit = find_max_message_bytes(self._settings, self._topic)
        self._limit_bytes = min(limit or _UNKNOWN_LIMIT_BYTES, MAX_MESSAGE_BYTES)
        return KafkaProducer(
            **kafka_python_options(self._settings),
            acks="all",
            # If Kafka refuses one record, an idempotent client refuses all others.
            enable_idempotence=False,
            max_request_size=MAX_MESSAGE_BYTES,
        )

    def _send(
        self,
        producer: KafkaProducer,
        record: RawRecord,
        letter: DeadLetter,
        limit_bytes: int,
    ) -> _Sent:
        place = self._settings.place_of(record.partition)
        source = RecordSource(*place, record.offset)
        fitted = fit(record, limit_bytes)
        headers = [
            *fitted.headers,
            (REASON_HEADER, letter.reason.encode()),
            (SOURCE_HEADER, str(source).encode()),
        ]
        if "value" in fitted.cuts:
            size = fitted.cuts["value"].bytes
            headers.append((SIZE_HEADER, str(size).encode()))
        if fitted.cuts:
            headers.append((CUT_HEADER, msgspec.json.encode(fitted.cuts)))
        future = producer.send(
            self._topic,
            key=fitted.key,
            value=fitted.value,
            headers=headers,
            timestamp_ms=record.timestamp_ms,
        )
        return _Sent(record, letter, future)

    def _settle(self, producer: KafkaProducer, sent: Iterable[_Sent]) -> int:
        """Wait for sent records; cut refused records and write them again, one by one.

        Returns how many of the cut records Kafka refuses again. Raises KafkaError if a
        record fails for a reason other than its content.
        """
        unwritten = 0
        producer.flush()
        # Records are sent one by one, because Kafka refuses a whole batch if it refuses
        # one record in the batch.
        for one in [one for one in sent if self._refusal(one.future) is not None]:
            small = self._send(producer, one.record, one.letter, _SMALLEST_BYTES)
            producer.flush()
            refusal = self._refusal(small.future)
            if refusal is None:
                continue
            unwritten += 1
            if not self._has_logged:
                self._has_logged = True
                _log.error(
                    "the dead letter of %s:%d:%d cannot be written (%s): "
                    "further such errors are only counted, not logged",
                    *self._settings.place_of(one.record.partition),
                    one.record.offset,
                    refusal,
                )
        return unwritten

    def _refusal(self, future: FutureRecordMetadata) -> RecordRefused | None:
        """Return why Kafka refused a record; None if Kafka accepted the record."""
        try:
            future.get()
        except KafkaError as error:
            return record_refusal(self._settings, error)
        return None
