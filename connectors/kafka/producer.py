"""Writes records to the topic of frames, at full speed or paced by record time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.partitioner.default import murmur2

from connectors.kafka.clients import failure, kafka_python_options
from connectors.kafka.handshake import wait_until_listening
from connectors.kafka.record_batches import HeaderName
from connectors.kafka.settings import (
    MAX_MESSAGE_BYTES,
    KafkaSettings,
)


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One record to write, in the form of docs/records.md.

    Attributes:
        partition: Kafka partition.
        timestamp_ms: When the tap received the frame, Unix ms.
        key: Channel id; None for heartbeats.
        value: The frame as on the wire; empty for heartbeats.
        headers: Headers of docs/records.md; names as
            `sds_core.observer.record.header_name` returns them.
    """

    partition: int
    timestamp_ms: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


def partitions_of(records: Iterable[TopicRecord]) -> int:
    """How many partitions the topic of some records needs."""
    return 1 + max(record.partition for record in records)


def partition_of(key: bytes, partitions: int) -> int:
    """Partition that Kafka's default producers choose for a key.

    So all frames of a channel are in one partition, whichever program writes them.
    """
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


def opening_of(records: Sequence[TopicRecord]) -> int:
    """Number of leading records after which each partition has one."""
    partitions = partitions_of(records)
    seen: set[int] = set()
    for count, record in enumerate(records, 1):
        seen.add(record.partition)
        if len(seen) == partitions:
            return count
    return len(records)


def write(
    records: Iterable[TopicRecord],
    settings: KafkaSettings,
    speed: float = 0.0,
    stop: threading.Event | None = None,
) -> int:
    """Write records to the topic of frames; returns how many.

    Record times do not change; only the writing is paced. A record is taken from the
    iterable after the one before it was written.

    Args:
        records: Records, roughly in order of time.
        settings: Cluster and topic.
        speed: Seconds of record time per second; 0 writes at full speed.
        stop: Set to end early.

    Raises:
        KafkaUnreachable: No broker answered, or not every record was acknowledged.
    """
    stop = stop or threading.Event()
    failures: list[KafkaError] = []
    written = 0
    try:
        wait_until_listening(settings)
        producer = KafkaProducer(
            **kafka_python_options(settings), max_request_size=MAX_MESSAGE_BYTES
        )
        with closing(producer):
            pace: _Pace | None = None
            for record in records:
                pace = pace or _Pace(record.timestamp_ms, speed)
                if failures or stop.wait(pace.wait_s(record.timestamp_ms)):
                    break
                sent = producer.send(
                    settings.topic,
                    key=record.key,
                    value=record.value,
                    headers=[
                        (HeaderName(name), value) for name, value in record.headers
                    ],
                    timestamp_ms=record.timestamp_ms,
                    partition=record.partition,
                )
                sent.add_errback(failures.append)
                written += 1
            producer.flush()
    except KafkaError as error:
        raise failure(settings, error) from error
    if failures:
        # An error of another record in the same batch has only the base class.
        specific = min(failures, key=lambda error: type(error) is KafkaError)
        raise failure(settings, specific) from specific
    return written


class _Pace:
    """Computes how long to wait before each record."""

    def __init__(self, first_ms: int, speed: float) -> None:
        self._first_ms = first_ms
        self._speed = speed
        self._begun_s = time.monotonic()

    def wait_s(self, record_ms: int) -> float:
        """Return the seconds to wait, at least 0."""
        if not self._speed:
            return 0.0
        due_s = self._begun_s + (record_ms - self._first_ms) / 1000 / self._speed
        return max(0.0, due_s - time.monotonic())
