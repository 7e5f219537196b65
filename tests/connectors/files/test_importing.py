"""A file's way into a real topic."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.files.importing import Survey, import_file, survey_file
from connectors.files.record_file import UnreadableFile, write_records
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.producer import partition_of
from connectors.kafka.settings import Client, TopicMissing
from sds_core.observer.record import RawRecord
from tests.support.kafka import NOBODY, KafkaTopic, TopicMaker

HEARTBEAT = (("observer", b"tap"), ("kind", b"heartbeat"), ("seq", b"9"))
NOW_MS = time.time_ns() // 1_000_000

RECORDS = [
    RawRecord(0, 5, 1_000, b"town", b"\x00\xff", (("seq", b"1"), ("meta", b"\xff"))),
    RawRecord(3, 6, 2_000, b"village", b"a", (("seq", b"2"), ("seq", b"3"))),
    RawRecord(3, 7, 2_500, None, b"", HEARTBEAT),
    RawRecord(5, 8, 2_600, b"village", None, (("meta", None),)),
    RawRecord(0, 9, 61_000, b"\xff", b"b", ()),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of some records."""
    path = tmp_path / "frames.jsonl.gz"
    write_records(RECORDS, path)
    return path


def held(topic: KafkaTopic) -> list[RawRecord]:
    """All records of a topic, in order of partition and offset."""
    offsets = TopicOffsets(topic.settings)
    try:
        ends = offsets.latest(offsets.partitions())
    finally:
        offsets.close()
    ranges = [OffsetRange(partition, 0, end) for partition, end in ends.items()]
    found = fetch(Client.CONFLUENT, topic.settings, ranges)
    return sorted(record for records in found for record in records)


def test_a_survey_tells_what_a_file_holds(file: Path, tmp_path: Path) -> None:
    """Nothing is known of a file without records."""
    assert survey_file(file) == Survey(5, 6, 1_000, 61_000)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    assert survey_file(empty) == Survey()


def test_a_record_of_a_later_hour_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    """Kafka would refuse it when the others are there; nobody is asked before."""
    path = tmp_path / "ahead.jsonl"
    ahead_ms = time.time_ns() // 1_000_000 + 7_200_000
    write_records([*RECORDS, RECORDS[0]._replace(timestamp_ms=ahead_ms)], path)
    with pytest.raises(UnreadableFile, match=rf"{ahead_ms}.* 7,\d+ s .*--restamp"):
        import_file(path, NOBODY, now_ms=NOW_MS)


@pytest.mark.kafka
def test_a_record_that_is_written_at_its_own_time_may_be_of_a_later_hour(
    tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """At the speed of life the clock comes along; one that is moved is of now."""
    now_ms = time.time_ns() // 1_000_000
    path = tmp_path / "ahead.jsonl"
    later = RECORDS[0]._replace(timestamp_ms=now_ms + 7_200_000)
    write_records([RECORDS[0]._replace(timestamp_ms=now_ms), later], path)
    stopped = threading.Event()
    stopped.set()
    settings = kafka_topic().settings
    assert import_file(path, settings, speed=1.0, stop=stopped, now_ms=NOW_MS) == 0
    assert import_file(path, settings, now_ms=now_ms, restamp=True) == 2


def test_a_partition_that_no_topic_is_made_for_is_refused(tmp_path: Path) -> None:
    """With what to do, before a broker is asked."""
    path = tmp_path / "far.jsonl"
    write_records([RECORDS[0]._replace(partition=12_000)], path)
    with pytest.raises(UnreadableFile, match=r"partition 12000.*--partitions"):
        import_file(path, NOBODY, now_ms=NOW_MS)


@pytest.mark.kafka
def test_a_partition_out_of_reach_is_none_where_their_number_is_given(
    tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """The key decides then."""
    path = tmp_path / "far.jsonl"
    write_records([RECORDS[0]._replace(partition=12_000)], path)
    topic = kafka_topic(partitions=2)
    assert import_file(path, topic.settings, partitions=2, now_ms=NOW_MS) == 1
    assert [r.partition for r in held(topic)] == [partition_of(b"town", 2)]


@pytest.mark.kafka
def test_records_keep_all_they_have(file: Path, kafka_topic: TopicMaker) -> None:
    """Also their partition where there are as many; what is absent becomes empty."""
    topic = kafka_topic(partitions=6)
    assert import_file(file, topic.settings, now_ms=NOW_MS) == len(RECORDS)
    found = [
        (r.partition, r.timestamp_ms, r.key, r.value, tuple(r.headers))
        for r in held(topic)
    ]
    assert found == sorted(
        (
            r.partition,
            r.timestamp_ms,
            r.key,
            r.value or b"",
            tuple((name, value or b"") for name, value in r.headers),
        )
        for r in RECORDS
    )


@pytest.mark.kafka
def test_with_fewer_partitions_a_channel_stays_together(
    file: Path, kafka_topic: TopicMaker
) -> None:
    """The key decides as for any producer; no record is left out."""
    topic = kafka_topic(partitions=2)
    assert import_file(file, topic.settings, now_ms=NOW_MS) == len(RECORDS)
    found = held(topic)
    village = [r for r in found if r.key == b"village"]
    assert [r.timestamp_ms for r in village] == [2_000, 2_600]
    assert {r.partition for r in village} == {partition_of(b"village", 2)}
    assert len(found) == len(RECORDS)


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("speed", "now_ms", "first_ms"), [(0.0, 500_000, 440_000), (30.0, 500_000, 442_000)]
)
def test_restamped_records_end_when_their_writing_does(
    file: Path, kafka_topic: TopicMaker, speed: float, now_ms: int, first_ms: int
) -> None:
    """All are moved by the same, and none into the future."""
    topic = kafka_topic(partitions=6)
    import_file(file, topic.settings, speed=speed, now_ms=now_ms, restamp=True)
    times = sorted(r.timestamp_ms for r in held(topic))
    assert times == [first_ms + r.timestamp_ms - 1_000 for r in RECORDS]


@pytest.mark.kafka
def test_a_bad_line_is_found_before_anything_is_written(
    file: Path, tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """Not even the topic is made."""
    path = tmp_path / "bad.jsonl"
    write_records(RECORDS, path)
    path.write_bytes(path.read_bytes() + b"nonsense\n")
    there = kafka_topic().settings
    settings = replace(there, topic=f"{there.topic}.new")
    with pytest.raises(UnreadableFile, match="line 6"):
        import_file(path, settings, now_ms=NOW_MS)
    offsets = TopicOffsets(settings)
    try:
        with pytest.raises(TopicMissing):
            offsets.partitions()
    finally:
        offsets.close()
