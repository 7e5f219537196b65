"""Writes spooled records to Kafka in order; all in-sync replicas must acknowledge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.producer.future import FutureRecordMetadata

from connectors.kafka.clients import (
    LazyProducer,
    failure,
    kafka_python_options,
    record_refusal,
)
from connectors.kafka.handshake import wait_until_listening
from connectors.kafka.producer import TopicRecord, partition_of, send
from connectors.kafka.settings import MAX_MESSAGE_BYTES, KafkaSettings, RecordRefused
from connectors.kafka.topics import ensure_frames_topic
from connectors.waku_rest.spool import Spooled

_ATTEMPT_S = 30.0
"""Time limit of one write, s. A write can delay the end of the mirror by at most this
time. A write that reaches the limit is retried."""


class FrameWriter(LazyProducer):
    """Writes spooled records; connects at the first write, and again after a failure.

    The time limit of one write is 30 s, or `kafka.timeout_s` if that is shorter. If the
    topic is missing, the writer creates it with `partitions` partitions.
    """

    def __init__(self, kafka: KafkaSettings, partitions: int, observer: str) -> None:
        self._kafka = replace(kafka, timeout_s=min(kafka.timeout_s, _ATTEMPT_S))
        self._wanted_partitions = partitions
        self._observer = observer.encode()
        self._partitions = 0

    def write(self, records: Sequence[Spooled]) -> dict[Spooled, RecordRefused]:
        """Write records; return the permanently refused records, each with the reason.

        Kafka has acknowledged all records that are not returned. After an error, some
        records may have been written; a retry writes them again with the same `seq`.

        Raises:
            connectors.kafka.settings.InvalidTopic: Kafka does not allow the topic's
                name.
            KafkaUnreachable: Not all records were acknowledged in time.
        """
        refused: dict[Spooled, RecordRefused] = {}
        # If one record is invalid, Kafka refuses its whole batch, and the producer
        # refuses all later records. Therefore each refused record is written again
        # alone, and only invalid records are refused again.
        for spooled in sorted(self._write(records)):
            refused |= self._write([spooled])
        return refused

    def _write(self, records: Sequence[Spooled]) -> dict[Spooled, RecordRefused]:
        producer = self._connected()
        refused: dict[Spooled, RecordRefused] = {}
        sent: list[tuple[Spooled, FutureRecordMetadata]] = []
        try:
            for spooled in records:
                for record in self._records(spooled):
                    try:
                        future = send(producer, self._kafka.topic, record)
                        sent.append((spooled, future))
                    except KafkaError as error:
                        refused[spooled] = record_refusal(self._kafka, error)
            producer.flush(self._kafka.timeout_s)
            for spooled, future in sent:
                try:
                    # After the flush, a record without a result has exceeded the time
                    # limit.
                    future.get(timeout=0.1)
                except KafkaError as error:
                    refused[spooled] = record_refusal(self._kafka, error)
        except KafkaError as error:
            self.close()
            raise failure(self._kafka, error) from error
        if refused:
            # The producer numbers its records, and the refused records leave a gap. The
            # producer therefore accepts no further records.
            self.close()
        return refused

    def _connect(self) -> KafkaProducer:
        wait_until_listening(self._kafka)
        timeout_ms = int(self._kafka.timeout_s * 1000)
        self._partitions = ensure_frames_topic(self._kafka, self._wanted_partitions)
        try:
            return KafkaProducer(
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

    def _records(self, spooled: Spooled) -> Iterator[TopicRecord]:
        tap = (("observer", self._observer), ("seq", str(spooled.seq).encode()))
        if spooled.is_heartbeat:
            headers = (*tap, ("kind", b"heartbeat"))
            for partition in range(self._partitions):
                yield TopicRecord(partition, spooled.at_ms, None, b"", headers)
            return
        # Records without a channel need no order, so all partitions get some.
        partition = (
            spooled.seq % self._partitions
            if spooled.key is None
            else partition_of(spooled.key, self._partitions)
        )
        yield TopicRecord(
            partition,
            spooled.at_ms,
            spooled.key,
            spooled.value,
            (*tap, *spooled.headers),
        )
