"""Writes records to the topic of frames, at full speed or paced by record time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.partitioner.default import murmur2
from kafka.producer.future import FutureRecordMetadata

from connectors.kafka.clients import abandon, failure, kafka_python_options
from connectors.kafka.handshake import wait_until_listening
from connectors.kafka.record_batches import HeaderName
from connectors.kafka.settings import MAX_MESSAGE_BYTES, KafkaSettings
from sds_core.observer.record import RawRecord
from sds_core.waku import WakuMessage

Headers = tuple[tuple[str, bytes], ...]

_REQUEST_TIMEOUT_MS = 30_000
"""Default of kafka-python."""

_GREATEST_TIMESTAMP_NS = 2**63 - 1

_MOST_UNFLUSHED_BYTES = 16 * 1024 * 1024
"""If the records since the last wait exceed this size, bytes, `write` waits until Kafka
has acknowledged them all.

kafka-python does not limit its buffer, and its sender thread can be slower than
`write`. Without this wait, a long file would fill the memory, and records would exceed
the delivery timeout.
"""

_RECORD_BYTES = 1_000
"""Memory that a record needs in the producer's buffer in addition to its key, value
and headers, bytes."""


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One record to write, in the format that docs/records.md describes.

    Attributes:
        partition: Kafka partition.
        timestamp_ms: When the tap received the frame, Unix ms.
        key: Channel id; None for heartbeats.
        value: The frame as on the wire; empty for heartbeats.
        headers: Pairs of name and value. A name has the form that
            `sds_core.observer.record.header_name` returns.
    """

    partition: int
    timestamp_ms: int
    key: bytes | None
    value: bytes
    headers: Headers

    @property
    def size_bytes(self) -> int:
        """Bytes of key, value and headers."""
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return len(self.key or b"") + len(self.value) + headers


def partitions_of(records: Iterable[TopicRecord]) -> int:
    """Return how many partitions a topic needs to contain the partitions of records."""
    return 1 + max(record.partition for record in records)


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition that Kafka's default producers choose for a key.

    All programs that write the frames of a channel thus use the same partition.
    """
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


def topic_record(record: RawRecord, partition: int) -> TopicRecord:
    """Convert a record that was read to a record that can be written to `partition`.

    An absent value of the record or of a header becomes empty, because the client
    cannot send absent values.
    """
    return TopicRecord(
        partition,
        record.timestamp_ms,
        record.key,
        record.value or b"",
        tuple((name, value or b"") for name, value in record.headers),
    )


def target_partition(record: RawRecord, partitions: int) -> int:
    """Return the partition to write a record to, in [0, partitions).

    If the topic has the record's partition, the record keeps it. Otherwise the
    partition is chosen by the key, so that the frames of a channel stay together. If
    the record has no key, the partition is chosen by the record's partition number.
    """
    if record.partition < partitions:
        return record.partition
    if record.key is None:
        return record.partition % partitions
    return partition_of(record.key, partitions)


def waku_headers(
    message: WakuMessage,
    source: str,
    pubsub_topic: str | None,
    message_hash: str | None,
) -> Headers:
    """Return the headers of a message's record, except `observer` and `seq`.

    A header with an unknown value is omitted. `message_hash` is `0x` and 64 hexadecimal
    digits.
    """
    headers: Headers = (
        ("source", source.encode()),
        ("content-topic", message.content_topic.encode()),
        ("ephemeral", b"true" if message.ephemeral else b"false"),
    )
    if message_hash is not None:
        headers += (("waku-hash", message_hash.encode()),)
    if pubsub_topic is not None:
        headers += (("pubsub-topic", pubsub_topic.encode()),)
    if 0 < message.timestamp_ns <= _GREATEST_TIMESTAMP_NS:
        headers += (("waku-timestamp", str(message.timestamp_ns).encode()),)
    if message.meta:
        headers += (("meta", message.meta),)
    return headers


def opening_of(records: Sequence[TopicRecord]) -> int:
    """Return the length of the shortest prefix that has a record of every partition.

    If a partition has no record, return the length of `records`.
    """
    partitions = partitions_of(records)
    seen: set[int] = set()
    for count, record in enumerate(records, 1):
        seen.add(record.partition)
        if len(seen) == partitions:
            return count
    return len(records)


def send(
    producer: KafkaProducer, topic: str, record: TopicRecord
) -> FutureRecordMetadata:
    """Pass a record to a producer, which writes it in the background."""
    return producer.send(
        topic,
        key=record.key,
        value=record.value,
        headers=[(HeaderName(name), value) for name, value in record.headers],
        timestamp_ms=record.timestamp_ms,
        partition=record.partition,
    )


class Acknowledgements:
    """Counts acknowledged records while further records are written."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self, _: object) -> None:
        """Count a record; may be a producer's callback, which runs in any thread."""
        with self._lock:
            self.count += 1


def write(
    records: Iterable[TopicRecord],
    settings: KafkaSettings,
    speed: float = 0.0,
    stop: threading.Event | None = None,
    acknowledged: Acknowledgements | None = None,
) -> int:
    """Write records to the topic of frames; return how many Kafka has acknowledged.

    `records` must be roughly in order of time. Records keep their times; only the
    writing is paced. `speed` is in seconds of record time per second of wall-clock
    time; 0 writes at full speed. A record is taken from `records` only after the
    previous record was passed to the producer. `stop` ends the writing early.
    `acknowledged` counts the acknowledged records, even if an error is raised.

    Raises:
        KafkaUnreachable: No broker answered, or a record was not acknowledged.
    """
    stop = stop or threading.Event()
    acknowledged = acknowledged or Acknowledgements()
    failures: list[KafkaError] = []
    timeout_ms = int(settings.timeout_s * 1000)
    try:
        wait_until_listening(settings)
        producer = KafkaProducer(
            **kafka_python_options(settings),
            max_request_size=MAX_MESSAGE_BYTES,
            request_timeout_ms=min(_REQUEST_TIMEOUT_MS, timeout_ms),
            delivery_timeout_ms=timeout_ms,
        )
        try:
            pace: _Pace | None = None
            unflushed_bytes = 0
            for record in records:
                pace = pace or _Pace(record.timestamp_ms, speed)
                if failures or stop.wait(pace.wait_s(record.timestamp_ms)):
                    break
                sent = send(producer, settings.topic, record)
                sent.add_callback(acknowledged.add)
                sent.add_errback(failures.append)
                unflushed_bytes += record.size_bytes + _RECORD_BYTES
                if unflushed_bytes > _MOST_UNFLUSHED_BYTES:
                    _flush(producer, acknowledged, failures, settings.timeout_s)
                    unflushed_bytes = 0
            _flush(producer, acknowledged, failures, settings.timeout_s)
        finally:
            # `abandon`, because `KafkaProducer.close` would wait forever for records
            # that were dropped.
            abandon(producer)
    except KafkaError as error:
        raise failure(settings, error) from error
    if failures:
        # Prefer an error of a subclass: if Kafka refuses one record of a batch, only
        # this record's error is specific. All others are plain `KafkaError`s.
        specific = min(failures, key=lambda error: type(error) is KafkaError)
        raise failure(settings, specific) from specific
    return acknowledged.count


def _flush(
    producer: KafkaProducer,
    acknowledged: Acknowledgements,
    failures: Sequence[KafkaError],
    timeout_s: float,
) -> None:
    """Wait until all records are acknowledged or a record has failed."""
    while not failures:
        before = acknowledged.count
        try:
            producer.flush(timeout_s)
        except KafkaTimeoutError:
            if not failures and acknowledged.count == before:
                raise
        else:
            return


class _Pace:
    def __init__(self, first_ms: int, speed: float) -> None:
        self._first_ms = first_ms
        self._speed = speed
        self._begun_s = time.monotonic()

    def wait_s(self, record_ms: int) -> float:
        if not self._speed:
            return 0.0
        due_s = self._begun_s + (record_ms - self._first_ms) / 1000 / self._speed
        # Python refuses a longer wait, which is needed if a record's time is wrong.
        return min(max(0.0, due_s - time.monotonic()), threading.TIMEOUT_MAX)
