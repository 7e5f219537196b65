"""Undecodable records are copied completely, on real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.dead_letter import DeadLetterWriter
from connectors.kafka.settings import Client, KafkaSettings
from sds_core.observer.dead_letter_view import DeadLetter
from sds_core.observer.record import RawRecord
from sds_core.wire import Reason
from tests.support.kafka import KafkaTopic, TopicMaker

pytestmark = pytest.mark.kafka


@pytest.fixture
def topic(kafka_topic: TopicMaker) -> KafkaTopic:
    """A topic of frames."""
    return kafka_topic(partitions=2)


@pytest.fixture
def writer(topic: KafkaTopic) -> Iterator[DeadLetterWriter]:
    """Writes to a dead-letter topic of the test's own."""
    made = DeadLetterWriter(topic.settings, topic=dead_topic(topic).topic)
    yield made
    made.close()


def dead_topic(topic: KafkaTopic) -> KafkaSettings:
    """Where the dead letters of a topic go."""
    settings = topic.settings
    return KafkaSettings(settings.bootstrap, f"{settings.topic}.dead", 20.0)


def dead_letters(topic: KafkaTopic, count: int) -> list[RawRecord]:
    """The first records of the dead-letter topic."""
    found = fetch(Client.CONFLUENT, dead_topic(topic), [OffsetRange(0, 0, count)])
    return [record for records in found for record in records]


def test_key_value_headers_and_time_are_kept(
    topic: KafkaTopic, writer: DeadLetterWriter
) -> None:
    """Headers for reason and source are added."""
    topic.write(b"good", time_ms=1)
    topic.write(b"bad", time_ms=2_000, key=b"town", headers=[("observer", b"tap")])
    writer.write([DeadLetter(0, 1, Reason.PROTOBUF_ERROR)])
    (letter,) = dead_letters(topic, 1)
    assert (letter.key, letter.value, letter.timestamp_ms) == (b"town", b"bad", 2_000)
    assert letter.headers == [
        ("observer", b"tap"),
        ("dead-letter-reason", b"protobuf_error"),
        ("dead-letter-source", f"{topic.settings.topic}:0:1".encode()),
    ]


def test_too_large_value_is_replaced_by_its_size(
    topic: KafkaTopic, writer: DeadLetterWriter
) -> None:
    """The dead-letter topic could not hold it."""
    topic.write(b"x" * 5_000_000)
    writer.write([DeadLetter(0, 0, Reason.TOO_LARGE)])
    (letter,) = dead_letters(topic, 1)
    assert letter.value == b""
    assert ("dead-letter-size", b"5000000") in letter.headers


def test_records_without_key_value_or_header_value_are_copied_too(
    topic: KafkaTopic, writer: DeadLetterWriter
) -> None:
    """Absent values, which the client cannot send, become empty."""
    topic.write(None)
    topic.write(b"bad", headers=[("meta", None)])
    letters = [DeadLetter(0, offset, Reason.EMPTY_VALUE) for offset in (0, 1)]
    writer.write(letters)
    first, second = dead_letters(topic, 2)
    assert (first.key, first.value) == (None, b"")
    assert ("meta", b"") in second.headers


@pytest.mark.parametrize("client", Client)
def test_header_name_that_is_not_utf8_is_copied_with_escapes(
    topic: KafkaTopic, client: Client
) -> None:
    """So every client can read the dead letter; all else is kept."""
    headers = ((b"\xfftap", b"\x00"), (b"seq", b"7"))
    topic.write_names(*headers, value=b"bad", time_ms=2_000, key=b"town")
    writer = DeadLetterWriter(topic.settings, client, dead_topic(topic).topic)
    try:
        writer.write([DeadLetter(0, 0, Reason.BAD_HEADER)])
    finally:
        writer.close()
    (letter,) = dead_letters(topic, 1)
    assert (letter.key, letter.value, letter.timestamp_ms) == (b"town", b"bad", 2_000)
    assert letter.headers == [
        ("\\xfftap", b"\x00"),
        ("seq", b"7"),
        ("dead-letter-reason", b"bad_header"),
        ("dead-letter-source", f"{topic.settings.topic}:0:0".encode()),
    ]


def test_letters_far_apart_in_several_partitions_are_all_found(
    topic: KafkaTopic, writer: DeadLetterWriter
) -> None:
    """Only the dead letters' records are copied."""
    for partition in (0, 1):
        topic.write_times(range(300), partition)
    wanted = [(0, 0), (0, 1), (0, 299), (1, 150)]
    writer.write([DeadLetter(p, offset, Reason.NO_CHANNEL) for p, offset in wanted])
    sources = {dict(r.headers)["dead-letter-source"] for r in dead_letters(topic, 4)}
    name = topic.settings.topic
    assert sources == {f"{name}:{p}:{offset}".encode() for p, offset in wanted}


def test_deleted_record_is_left_out(
    topic: KafkaTopic, writer: DeadLetterWriter
) -> None:
    """It stays counted, and the others are copied."""
    topic.write_times([1, 2])
    topic.write_times([3], partition=1)
    topic.delete_before(2)
    writer.write(
        [DeadLetter(0, 0, Reason.NO_CHANNEL), DeadLetter(1, 0, Reason.NO_CHANNEL)]
    )
    (letter,) = dead_letters(topic, 1)
    assert letter.timestamp_ms == 3
