"""Writes heartbeats to a topic whose taps write none (docs/records.md)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kafka import KafkaProducer
from kafka.errors import KafkaError

from connectors.kafka.clients import abandon, kafka_python_options
from connectors.kafka.producer import TopicRecord, send
from connectors.kafka.settings import KafkaSettings

OBSERVER = "sds-monitor"
INTERVAL_S = 5.0
_HEADERS = (("kind", b"heartbeat"), ("observer", OBSERVER.encode()))


@contextmanager
def heartbeats(
    settings: KafkaSettings, interval_s: float = INTERVAL_S
) -> Iterator[None]:
    """While the ``with`` block runs, write heartbeats to every partition at intervals.

    Heartbeats advance the monitor's event time while no traffic arrives. Unlike the
    heartbeats of a tap, these heartbeats show only that the monitor reaches Kafka, not
    that a tap works, and have no sequence number.
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
        # The wait is limited, because writing a heartbeat may take long while Kafka is
        # unreachable.
        thread.join(INTERVAL_S)


def _beat(settings: KafkaSettings, interval_s: float, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            producer = KafkaProducer(**kafka_python_options(settings))
            try:
                while not stop.is_set():
                    for topic in settings.topics:
                        _write(producer, topic, interval_s)
                    stop.wait(interval_s)
            finally:
                abandon(producer)
        except KafkaError:
            # This thread only retries, because the job reports that Kafka is
            # unreachable.
            stop.wait(interval_s)


def _write(producer: KafkaProducer, topic: str, timeout_s: float) -> None:
    now_ms = time.time_ns() // 1_000_000
    for partition in producer.partitions_for(topic) or ():
        send(producer, topic, TopicRecord(partition, now_ms, None, b"", _HEADERS))
    producer.flush(timeout_s)
