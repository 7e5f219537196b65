"""From the spool to Kafka: in order, acknowledged by all replicas."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafka import KafkaProducer
from kafka.errors import KafkaError

from connectors.kafka.clients import abandon, failure, kafka_python_options
from connectors.kafka.handshake import wait_until_listening
from connectors.kafka.producer import TopicRecord
from connectors.kafka.settings import (
    MAX_MESSAGE_BYTES,
    KafkaSettings,
)
from connectors.kafka.topics import ensure_frames_topic
from connectors.waku_rest.spool import Spooled

_ATTEMPT_S = 30.0
"""For one write: it is repeated anyway, and nothing can end while one waits."""


class FrameWriter:
    """Writes spooled records; connects when it first has to, and again after a failure.

    Args:
        kafka: Cluster and topic of frames; `timeout_s` bounds one write, and so do
            30 s.
        partitions: Of the topic, if it is made.
        observer: Tap id.
    """

    def __init__(self, kafka: KafkaSettings, partitions: int, observer: str) -> None:
        self._kafka = replace(kafka, timeout_s=min(kafka.timeout_s, _ATTEMPT_S))
        self._wanted_partitions = partitions
        self._observer = observer.encode()
        self._partitions = 0
        self._producer: KafkaProducer | None = None

    def write(self, records: Sequence[Spooled]) -> None:
        """Write records; all are acknowledged when this returns.

        After an error some may have been: written again, they have the same `seq`.

        Raises:
            connectors.kafka.topics.InvalidTopic: Kafka takes no topic of this name.
            KafkaUnreachable: Not all were acknowledged in time.
        """
        producer = self._connected()
        try:
            sent = [
                producer.send(
                    self._kafka.topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp_ms,
                    partition=record.partition,
                )
                for spooled in records
                for record in self._records(spooled)
            ]
            producer.flush(self._kafka.timeout_s)
            for future in sent:
                # Done, or as late as all the others.
                future.get(timeout=0.1)
        except KafkaError as error:
            self.close()
            raise failure(self._kafka, error) from error

    def close(self) -> None:
        """Close the connection; the next write opens another."""
        if self._producer is not None:
            abandon(self._producer)
            self._producer = None

    def _connected(self) -> KafkaProducer:
        if self._producer is None:
            wait_until_listening(self._kafka)
            timeout_ms = int(self._kafka.timeout_s * 1000)
            self._partitions = ensure_frames_topic(self._kafka, self._wanted_partitions)
            try:
                self._producer = KafkaProducer(
                    **kafka_python_options(self._kafka),
                    acks="all",
                    enable_idempotence=True,
                    max_request_size=MAX_MESSAGE_BYTES,
                    max_block_ms=timeout_ms,
                    bootstrap_timeout_ms=timeout_ms,
                    request_timeout_ms=timeout_ms,
                    delivery_timeout_ms=2 * timeout_ms,
                )
            except KafkaError as error:
                raise failure(self._kafka, error) from error
        return self._producer

    def _records(self, spooled: Spooled) -> Iterator[TopicRecord]:
        """A frame's record; of a heartbeat one for each partition (contract, 1)."""
        tap = (("observer", self._observer), ("seq", str(spooled.seq).encode()))
        if spooled.is_heartbeat:
            headers = (*tap, ("kind", b"heartbeat"))
            for partition in range(self._partitions):
                yield TopicRecord(partition, spooled.at_ms, None, b"", headers)
            return
        # Without a channel nothing is known that it would have to be in order with.
        partition_key = spooled.value if spooled.key is None else spooled.key
        yield TopicRecord(
            zlib.crc32(partition_key) % self._partitions,
            spooled.at_ms,
            spooled.key,
            spooled.value,
            (*tap, *spooled.headers),
        )
