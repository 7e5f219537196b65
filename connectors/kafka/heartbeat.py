"""Heartbeats for a topic whose taps write none (contract, 1)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kafka import KafkaProducer
from kafka.errors import KafkaError

from connectors.kafka.clients import abandon, kafka_python_options
from connectors.kafka.settings import KafkaSettings

OBSERVER = "sds-monitor"
INTERVAL_S = 5.0
_HEADERS = [("kind", b"heartbeat"), ("observer", OBSERVER.encode())]


@contextmanager
def heartbeats(
    settings: KafkaSettings, interval_s: float = INTERVAL_S
) -> Iterator[None]:
    """Write a heartbeat to every partition now and then while the block runs.

    They keep the event-time clock moving in silence. They say that the monitor's
    own way to Kafka works, and nothing of any tap: they carry no number.
    """
    stop = threading.Event()
    thread = threading.Thread(
        target=_beat, args=(settings, interval_s, stop), name="heartbeats", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        # While Kafka is away it may be long about a heartbeat; the process need not be.
        thread.join(INTERVAL_S)


def _beat(settings: KafkaSettings, interval_s: float, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            producer = _producer(settings)
            try:
                while not stop.is_set():
                    _write(producer, settings.topic, interval_s)
                    stop.wait(interval_s)
            finally:
                abandon(producer)
        except KafkaError:
            # The job itself says when Kafka is away; this begins again.
            stop.wait(interval_s)


def _producer(settings: KafkaSettings) -> KafkaProducer:
    return KafkaProducer(**kafka_python_options(settings))


def _write(producer: KafkaProducer, topic: str, timeout_s: float) -> None:
    now_ms = time.time_ns() // 1_000_000
    for partition in producer.partitions_for(topic) or ():
        producer.send(
            topic,
            value=b"",
            headers=_HEADERS,
            partition=partition,
            timestamp_ms=now_ms,
        )
    producer.flush(timeout_s)
