"""Plays a recording into Kafka."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import closing

from kafka import KafkaProducer
from kafka.errors import KafkaError

from connectors.kafka.settings import KafkaSettings, KafkaUnreachable
from connectors.kafka.topics import KEEP_FOR_EVER, ensure_topic
from connectors.recording.recording import RecordedRecord, partitions_of


def make_topic(records: Sequence[RecordedRecord], settings: KafkaSettings) -> None:
    """Make the topic of a recording, if it is missing, with all its partitions.

    Raises:
        KafkaUnreachable: No broker answered.
    """
    ensure_topic(settings, settings.topic, partitions_of(records), KEEP_FOR_EVER)


def play(
    records: Sequence[RecordedRecord],
    settings: KafkaSettings,
    duration_s: float = 0.0,
    stop: threading.Event | None = None,
) -> None:
    """Write the records to their topic; see `make_topic`.

    Record times stay as they are; only the writing takes time.

    Args:
        records: In order of time, at least one.
        settings: Cluster and topic.
        duration_s: Seconds over which to spread the records, by their times.
        stop: Set to end early.

    Raises:
        KafkaUnreachable: No broker answered.
    """
    stop = stop or threading.Event()
    first_ms = records[0].timestamp_ms
    length_ms = max(1, records[-1].timestamp_ms - first_ms)
    begun = time.monotonic()
    try:
        producer = KafkaProducer(bootstrap_servers=settings.bootstrap.split(","))
        with closing(producer):
            for record in records:
                due = begun + (record.timestamp_ms - first_ms) / length_ms * duration_s
                if stop.wait(max(0.0, due - time.monotonic())):
                    return
                producer.send(
                    settings.topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp_ms,
                    partition=record.partition,
                )
            producer.flush()
    except KafkaError as error:
        raise KafkaUnreachable(settings.bootstrap, error) from error
