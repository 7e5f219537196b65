"""How clients connect, and how errors of a broker are reported to the caller."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from kafka import KafkaProducer
from kafka.errors import (
    CorruptRecordError,
    KafkaError,
    KafkaTimeoutError,
    RecordListTooLargeError,
)

from connectors.kafka.clients import failure, kafka_python_options
from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import MAX_MESSAGE_BYTES, KafkaSettings, RecordRefused
from connectors.kafka.topics import ensure_topic
from streaming.position import IDLE_PARTITION_MS
from tests.support.kafka import NOBODY, TIMEOUT_S, TopicMaker

YEAR_3000_MS = 32_503_680_000_000


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("configuration", "record", "said"),
    [
        (
            {},
            TopicRecord(0, 1_000, b"k", b"x" * MAX_MESSAGE_BYTES, ()),
            "max.message.bytes",
        ),
        (
            {"max.message.bytes": "1000"},
            TopicRecord(0, 1_000, b"k", b"x" * 2_000, ()),
            "max.message.bytes",
        ),
        (
            {},
            TopicRecord(0, YEAR_3000_MS, b"k", b"x", ()),
            "message.timestamp.after.max.ms",
        ),
        (
            {"cleanup.policy": "compact"},
            TopicRecord(0, 1_000, None, b"x", ()),
            "cleanup.policy",
        ),
    ],
)
def test_refused_record_is_distinguished_from_unreachable_broker(
    kafka_topic: TopicMaker,
    configuration: dict[str, str],
    record: TopicRecord,
    said: str,
) -> None:
    """The error gives the reason and the topic's setting behind it."""
    there = kafka_topic().settings
    settings = replace(there, topic=f"{there.topic}.strict")
    ensure_topic(settings, settings.topic, 1, configuration)
    with pytest.raises(RecordRefused) as caught:
        write([record], settings)
    text = str(caught.value)
    assert text.startswith(f"Kafka at {settings.bootstrap} refuses a record, ")
    assert said in text
    assert caught.value.cause in text
    assert "--bootstrap" not in text
    assert len(text.splitlines()) == 1


def test_clients_return_before_the_watermark_passes_what_they_write() -> None:
    """By default, kafka-python waits for up to 36 s after an outage."""
    settings = KafkaSettings("127.0.0.1:9092")
    longest_ms = kafka_python_options(settings)["reconnect_backoff_max_ms"]
    assert 10 * longest_ms < IDLE_PARTITION_MS


@pytest.mark.kafka
def test_batch_with_a_bad_record_is_refused(
    kafka_topic: TopicMaker,
) -> None:
    """Kafka refuses whole batches, and its client has no error class for it."""
    settings = kafka_topic().settings
    options = kafka_python_options(settings)
    with closing(KafkaProducer(**options, linger_ms=TIMEOUT_S * 1000)) as producer:
        sent = [
            producer.send(settings.topic, b"x", timestamp_ms=at_ms, partition=0)
            for at_ms in (1_000, YEAR_3000_MS, 2_000)
        ]
        producer.flush(TIMEOUT_S)
        causes = []
        for future in sent:
            with pytest.raises(KafkaError) as caught:
                future.get(TIMEOUT_S)
            refusal = failure(settings, caught.value)
            assert isinstance(refusal, RecordRefused)
            causes.append(refusal.cause)
    assert ["whose time" in cause for cause in causes] == [False, True, False]
    assert causes[0] == causes[2]
    assert "in one batch with another" in causes[0]


@pytest.mark.parametrize(
    ("error", "said"),
    [(RecordListTooLargeError(), "segment.bytes"), (CorruptRecordError(), "corrupt")],
)
def test_rare_refusals_are_reported_as_refusals(error: KafkaError, said: str) -> None:
    """The message says what to check."""
    found = failure(NOBODY, error)
    assert isinstance(found, RecordRefused)
    assert said in str(found)


def test_unreachable_broker_is_not_a_refusal() -> None:
    """The record may be accepted later."""
    found = failure(NOBODY, KafkaTimeoutError())
    assert not isinstance(found, RecordRefused)
    assert "check --bootstrap" in str(found)
