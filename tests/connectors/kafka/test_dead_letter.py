"""Undecodable records are copied as far as their topic takes them, on real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.dead_letter import DeadLetterWriter
from connectors.kafka.dead_letter_cut import decode_cuts
from connectors.kafka.settings import MAX_MESSAGE_BYTES, Client, KafkaSettings
from connectors.kafka.topics import (
    KEEP_FOR_EVER,
    ensure_topic,
    find_max_message_bytes,
)
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


def test_records_after_those_that_kafka_deleted_are_copied(
    topic: KafkaTopic, writer: DeadLetterWriter
) -> None:
    """Also those near to them, which one request reads."""
    topic.write_times([1, 2, 3, 4])
    topic.delete_before(2)
    writer.write([DeadLetter(0, offset, Reason.NO_CHANNEL) for offset in range(4)])
    assert [one.timestamp_ms for one in dead_letters(topic, 2)] == [3, 4]


@pytest.mark.parametrize("limit", [None, 1_048_588, 3_000])
def test_letter_is_cut_to_the_limit_of_its_topic(
    topic: KafkaTopic, writer: DeadLetterWriter, limit: int | None
) -> None:
    """Ours of 32 MiB, Kafka's default, and one that is smaller than any batch."""
    name = dead_topic(topic).topic
    if limit is not None:
        configuration = {**KEEP_FOR_EVER, "max.message.bytes": str(limit)}
        ensure_topic(topic.settings, name, 1, configuration)
    headers = [("observer", b"tap"), ("meta", b"h" * (MAX_MESSAGE_BYTES - 1_000))]
    topic.write(b"x", headers=headers)
    for size in (900_000, 1_048_000):
        topic.write(b"v" * size, key=b"k" * 400)
    letters = [DeadLetter(0, offset, Reason.PROTOBUF_ERROR) for offset in range(3)]
    assert writer.write(letters) == 0
    found_limit = find_max_message_bytes(topic.settings, name)
    assert found_limit == (limit or MAX_MESSAGE_BYTES)
    found = dead_letters(topic, 3)
    cuts = [decode_cuts(dict(one.headers).get("dead-letter-cut")) for one in found]
    sizes = [{name: one.bytes for name, one in some.items()} for some in cuts]
    fits = limit is None
    assert sizes[0] == {"headers": len("observertapmeta") + len(headers[1][1])}
    tiny = {"key": 400} if limit == 3_000 else {}
    assert sizes[1] == (tiny and {"value": 900_000, **tiny})
    assert sizes[2] == ({} if fits else {"value": 1_048_000, **tiny})
    assert found[0].value == b"x"
    assert found[0].headers[0] == ("observer", b"tap")
    # A quarter of the limit, without 2,048 bytes for the dead letter's own headers.
    assert found[2].key == b"k" * (238 if tiny else 400)
    assert dict(found[2].headers).get("dead-letter-size") == (
        None if fits else b"1048000"
    )


def test_letter_that_kafka_refuses_is_counted_and_the_others_are_written(
    topic: KafkaTopic, writer: DeadLetterWriter, caplog: pytest.LogCaptureFixture
) -> None:
    """The first one is logged, and a record of the same batch is not lost with it."""
    # A compacted topic takes no record without a key.
    name, compacted = dead_topic(topic).topic, {"cleanup.policy": "compact"}
    ensure_topic(topic.settings, name, 1, compacted)
    for key in (b"a", None, b"b", None):
        topic.write(b"bad", key=key)
    letters = [DeadLetter(0, offset, Reason.PROTOBUF_ERROR) for offset in range(4)]
    assert writer.write(letters) == 2
    assert writer.write(letters[1:2]) == 1
    assert [one.key for one in dead_letters(topic, 2)] == [b"a", b"b"]
    (line,) = (one.getMessage() for one in caplog.records if one.name == "sds-monitor")
    assert f"{topic.settings.topic}:0:1 cannot be written (" in line
    assert "cleanup.policy" in line
    assert line.endswith("further such errors are only counted, not logged")
