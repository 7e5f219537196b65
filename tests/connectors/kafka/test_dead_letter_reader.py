"""Dead letters are read as the original records, on real Kafka."""

from __future__ import annotations

import pytest

from connectors.kafka.dead_letter import DeadLetterWriter
from connectors.kafka.dead_letter_reader import DeadLetterReader, read_letter
from connectors.kafka.record_source import RecordSource, parse_source, read_source
from connectors.kafka.settings import TopicMissing
from sds_core.observer.dead_letter_view import DeadLetter
from sds_core.observer.record import RawRecord
from sds_core.wire import Reason
from tests.support.kafka import KafkaTopic, TopicMaker

kafka = pytest.mark.kafka


def dead_letters(topic: KafkaTopic, *letters: DeadLetter, times: int = 1) -> str:
    """Write dead letters of a topic; returns the name of theirs."""
    name = f"{topic.settings.topic}.dead"
    writer = DeadLetterWriter(topic.settings, topic=name)
    try:
        for _ in range(times):
            writer.write(letters)
    finally:
        writer.close()
    return name


@kafka
def test_dead_letter_has_the_original_record(kafka_topic: TopicMaker) -> None:
    """Place, key, value, time and headers, besides reason and source."""
    topic = kafka_topic(2)
    headers = [("observer", b"tap"), ("meta", b"\xff")]
    topic.write(b"bad", partition=1, key=b"town", time_ms=2_000, headers=headers)
    name = dead_letters(topic, DeadLetter(1, 0, Reason.PROTOBUF_ERROR))
    (letter,) = DeadLetterReader(topic.settings, name)
    assert letter.reason == Reason.PROTOBUF_ERROR
    assert letter.source == RecordSource(topic.settings.topic, 1, 0)
    assert letter.size_bytes is None
    assert letter.record == RawRecord(1, 0, 2_000, b"town", b"bad", tuple(headers))


@kafka
def test_repeated_letters_are_read_once_and_other_records_counted(
    kafka_topic: TopicMaker,
) -> None:
    """A second iteration starts again."""
    topic = kafka_topic()
    topic.write(b"1")
    topic.write(b"x" * 5_000_000)
    name = dead_letters(
        topic,
        DeadLetter(0, 0, Reason.NO_CHANNEL),
        DeadLetter(0, 1, Reason.TOO_LARGE),
        times=2,
    )
    other = KafkaTopic(type(topic.settings)(topic.settings.bootstrap, name))
    other.write(b"no dead letter")
    reader = DeadLetterReader(topic.settings, name)
    for _ in range(2):
        found = list(reader)
        assert [one.source.offset for one in found] == [0, 1]
        assert found[1].size_bytes == 5_000_000
        assert reader.strangers == 1


@kafka
def test_letters_of_a_recreated_topic_are_no_repetitions(
    kafka_topic: TopicMaker,
) -> None:
    """Both records had the same place; one letter is there twice."""
    topic = kafka_topic()
    headers = [
        ("dead-letter-reason", b"no_channel"),
        ("dead-letter-source", b"sds.frames:0:0"),
    ]
    for value in (b"old", b"new", b"old"):
        topic.write(value, headers=headers)
    found = DeadLetterReader(topic.settings, topic.settings.topic)
    assert [one.record.value for one in found] == [b"old", b"new"]


@kafka
def test_letters_of_several_partitions_are_in_order_of_time(
    kafka_topic: TopicMaker,
) -> None:
    """If someone else created the topic, it may have more than one partition."""
    topic = kafka_topic(3)
    for number in range(30):
        headers = [
            ("dead-letter-reason", b"no_channel"),
            ("dead-letter-source", f"sds.frames:0:{number}".encode()),
        ]
        topic.write(partition=number % 3, time_ms=1_000 * number + 1, headers=headers)
    found = DeadLetterReader(topic.settings, topic.settings.topic)
    assert [one.source.offset for one in found] == [*range(30)]


@kafka
def test_missing_topic_is_an_error(kafka_topic: TopicMaker) -> None:
    """The caller can then name the flag to check."""
    with pytest.raises(TopicMissing, match=r"nothing\.dead .*--dead-letter-topic"):
        list(DeadLetterReader(kafka_topic().settings, "nothing.dead"))


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("dead-letter-reason", b"no_channel"),),
        (("dead-letter-source", b"sds.frames:0:1"),),
        (("dead-letter-reason", b"x"), ("dead-letter-source", b"\xff:0:1")),
    ],
)
def test_a_record_without_reason_or_source_is_no_dead_letter(
    headers: tuple[tuple[str, bytes], ...],
) -> None:
    """Nor is a record with an invalid source."""
    assert read_letter(RawRecord(0, 0, 0, None, b"", headers)) is None


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("sds.frames:2:1714", RecordSource("sds.frames", 2, 1714)),
        ("sds.frames:2", None),
        ("a:b:c", None),
        ("a/b:1:2", None),
        ("a:-1:2", None),
        ("a:1:" + "9" * 30, None),
    ],
)
def test_source_round_trips(text: str, source: RecordSource | None) -> None:
    """It is topic, partition and offset."""
    assert parse_source(text) == source
    assert source is None or str(source) == text


@kafka
def test_missing_record_gives_none(kafka_topic: TopicMaker) -> None:
    """Deleted, not yet written, in no partition, or no record at all."""
    topic = kafka_topic()
    name = topic.settings.topic
    topic.write_times([1, 2])
    topic.write_transaction([3])
    topic.delete_before(1)
    held = {
        offset: read_source(topic.settings, RecordSource(name, 0, offset))
        for offset in range(5)
    }
    assert {offset for offset, record in held.items() if record} == {1, 2}
    assert read_source(topic.settings, RecordSource(name, 1, 0)) is None
