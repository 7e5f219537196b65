"""Importing a file of records into a real topic."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.files.importing import Survey, _shift_ms, import_file, survey_file
from connectors.files.record_file import UnreadableFile, write_records
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.producer import _Pace, partition_of
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


@pytest.mark.parametrize("speed", [1e-12, 5e-324])
def test_slow_import_of_times_that_lie_far_apart_can_be_stopped(speed: float) -> None:
    """A record may have no time, and Python refuses to wait for 292 years."""
    survey = Survey(2, 1, 0, NOW_MS)
    assert _shift_ms(survey, speed, NOW_MS) == NOW_MS
    pace = _Pace(0, speed)
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    assert stop.wait(pace.wait_s(NOW_MS))


def test_survey_summarises_a_file(file: Path, tmp_path: Path) -> None:
    """A file without records gives zeros."""
    assert survey_file(file) == Survey(5, 6, 1_000, 61_000)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    assert survey_file(empty) == Survey()


def test_record_too_far_in_the_future_is_refused_first(
    tmp_path: Path,
) -> None:
    """Otherwise Kafka would refuse it after other records were written."""
    path = tmp_path / "ahead.jsonl"
    ahead_ms = time.time_ns() // 1_000_000 + 7_200_000
    write_records([*RECORDS, RECORDS[0]._replace(timestamp_ms=ahead_ms)], path)
    with pytest.raises(UnreadableFile, match=rf"{ahead_ms}.* 7,\d+ s .*--restamp"):
        import_file(path, NOBODY, now_ms=NOW_MS)


@pytest.mark.kafka
def test_record_written_at_its_own_time_may_be_later(
    tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """With speed 1, or with moved times, no record is ahead of the clock."""
    now_ms = time.time_ns() // 1_000_000
    path = tmp_path / "ahead.jsonl"
    later = RECORDS[0]._replace(timestamp_ms=now_ms + 7_200_000)
    write_records([RECORDS[0]._replace(timestamp_ms=now_ms), later], path)
    stopped = threading.Event()
    stopped.set()
    settings = kafka_topic().settings
    assert import_file(path, settings, speed=1.0, stop=stopped, now_ms=NOW_MS) == 0
    assert import_file(path, settings, now_ms=now_ms, restamp=True) == 2


def test_partition_above_the_maximum_is_refused(tmp_path: Path) -> None:
    """The error says what to do and needs no broker."""
    path = tmp_path / "far.jsonl"
    write_records([RECORDS[0]._replace(partition=12_000)], path)
    with pytest.raises(UnreadableFile, match=r"partition 12000.*--partitions"):
        import_file(path, NOBODY, now_ms=NOW_MS)


@pytest.mark.kafka
def test_partition_above_the_maximum_is_allowed_with_a_given_number(
    tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """The key then decides the partition."""
    path = tmp_path / "far.jsonl"
    write_records([RECORDS[0]._replace(partition=12_000)], path)
    topic = kafka_topic(partitions=2)
    assert import_file(path, topic.settings, partitions=2, now_ms=NOW_MS) == 1
    assert [r.partition for r in held(topic)] == [partition_of(b"town", 2)]


@pytest.mark.kafka
def test_imported_records_are_unchanged(file: Path, kafka_topic: TopicMaker) -> None:
    """They keep their partition if the topic has it; absent values become empty."""
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
    """The key decides as for any producer, and no record is left out."""
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
def test_last_restamped_record_has_the_time_of_its_writing(
    file: Path, kafka_topic: TopicMaker, speed: float, now_ms: int, first_ms: int
) -> None:
    """All times are moved by the same amount, none into the future."""
    topic = kafka_topic(partitions=6)
    import_file(file, topic.settings, speed=speed, now_ms=now_ms, restamp=True)
    times = sorted(r.timestamp_ms for r in held(topic))
    assert times == [first_ms + r.timestamp_ms - 1_000 for r in RECORDS]


@pytest.mark.kafka
def test_a_bad_line_is_found_before_anything_is_written(
    file: Path, tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """Not even the topic is created."""
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
