"""Topics of the benchmarks: data sets written at full speed or at a rate."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from confluent_kafka import Producer

from benchmarks.data import PARTITIONS
from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import TopicRecord
from connectors.kafka.settings import MAX_MESSAGE_BYTES, KafkaSettings
from connectors.kafka.topics import ensure_frames_topic


def new_topic(broker: EmbeddedBroker, name: str) -> KafkaSettings:
    """Make an empty topic of `PARTITIONS` partitions."""
    kafka = KafkaSettings(broker.bootstrap, name)
    ensure_frames_topic(kafka, PARTITIONS)
    return kafka


class Writer:
    """Writes records, and remembers when.

    Attributes:
        written_s: Time of `time.monotonic` at which each frame was handed to the
            client, in order; those of heartbeats are left out.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        self._topic = kafka.topic
        self._producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "message.max.bytes": MAX_MESSAGE_BYTES + 1_000_000,
                "linger.ms": 5,
                # After the restart of a broker, no record is there twice.
                "enable.idempotence": True,
                "log_level": 0,
            }
        )
        self.written_s: list[float] = []

    def write(self, record: TopicRecord) -> None:
        """Write a record; waits while the client's queue is full."""
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    record.value,
                    record.key,
                    record.partition,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                break
        if record.value:
            self.written_s.append(time.monotonic())
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the broker has all records.

        Raises:
            TimeoutError: It does not have them after a minute.
        """
        if left := self._producer.flush(60):
            message = f"the broker did not take {left} records"
            raise TimeoutError(message)


def load(kafka: KafkaSettings, records: Iterable[TopicRecord]) -> tuple[int, int]:
    """Write all records with their own times.

    Returns:
        The number of frames, and that of their bytes.
    """
    writer, size_bytes = Writer(kafka), 0
    for record in records:
        writer.write(record)
        size_bytes += len(record.value)
    writer.flush()
    return len(writer.written_s), size_bytes


def at_rate(
    records: Iterable[TopicRecord], per_second: float
) -> Iterator[tuple[float, TopicRecord]]:
    """Yield frames with the seconds after the start at which each is due.

    The traffic of the data set is compressed or stretched to the rate. Heartbeats are
    replaced by one per second, tap and partition: without them, a partition without
    frames would hold back the batch.
    """
    taps: dict[str, int] = defaultdict(int)
    number = second = 0
    for record in records:
        if not record.value:
            continue
        due_s = number / per_second
        tap = dict(record.headers)["observer"].decode()
        headers = [*record.headers]
        headers[1] = ("seq", str(taps[tap]).encode())
        taps[tap] += 1
        while second <= due_s:
            yield from ((second, one) for one in heartbeats(taps))
            second += 1
        yield due_s, replace(record, headers=tuple(headers))
        number += 1


def heartbeats(taps: dict[str, int]) -> Iterator[TopicRecord]:
    """Yield a heartbeat of each tap for each partition.

    Args:
        taps: Next sequence number by tap.
    """
    for tap, seq in taps.items():
        headers = (
            ("observer", tap.encode()),
            ("seq", str(seq - 1).encode() if seq else b"0"),
            ("source", b"simulator"),
            ("kind", b"heartbeat"),
        )
        for partition in range(PARTITIONS):
            yield TopicRecord(partition, 0, None, b"", headers)


class Feed:
    """Writes records in a thread when they are due, with the current time.

    Attributes:
        written_s: See `Writer`.
        late_s: Greatest delay of a record, seconds; a large one means that the machine
            was too slow to write at the rate.
    """

    def __init__(
        self, kafka: KafkaSettings, timed: Iterable[tuple[float, TopicRecord]]
    ) -> None:
        self._writer = Writer(kafka)
        self._timed = timed
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.written_s = self._writer.written_s
        self.late_s = 0.0

    @property
    def is_running(self) -> bool:
        """Whether records are left to write."""
        return self._thread.is_alive()

    def _run(self) -> None:
        start_s = time.monotonic()
        for due_s, record in self._timed:
            wait_s = start_s + due_s - time.monotonic()
            if wait_s > 0 and self._ending.wait(wait_s):
                break
            if self._ending.is_set():
                break
            self.late_s = max(self.late_s, -wait_s)
            now_ms = time.time_ns() // 1_000_000
            self._writer.write(replace(record, timestamp_ms=now_ms))
        self._writer.flush()

    @contextmanager
    def running(self) -> Iterator[Feed]:
        """Write in the background; ended in the end whatever happens."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            self._thread.join()
