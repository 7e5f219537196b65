"""Batches that were planned before Kafka deleted their records."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from connectors.kafka.consumer import OffsetRange
from connectors.kafka.settings import KafkaSettings, RecordsLost
from sds_core.observer.dead_letter_view import DEAD_LETTERS, DeadLetterDigest
from streaming.position import Position
from streaming.settings import SourceSettings
from streaming.source import SdsFramesReader
from tests.support.batches import WALL_MS
from tests.support.kafka import TopicMaker
from tests.support.topics import ListedTopic


def ranges_of(
    reader: SdsFramesReader, start: Position, end: Position
) -> list[OffsetRange]:
    """What a batch reads, in order of partitions."""
    tasks = reader.partitions(start.to_json(), end.to_json())
    return sorted(one.offsets for task in tasks for one in task.ranges)


@pytest.mark.parametrize(
    ("firsts", "ranges", "lost"),
    [
        ([0, 0, 0], [(0, 0, 4), (1, 0, 3)], 0),
        ([4, 2, 0], [(1, 2, 3)], 6),
        # Newer records are gone too, and the next plan counts those.
        ([6, 3, 0], [], 7),
    ],
)
def test_planned_batch_is_read_without_its_deleted_records(
    monkeypatch: pytest.MonkeyPatch,
    firsts: list[int],
    ranges: list[tuple[int, int, int]],
    lost: int,
) -> None:
    """With skip_lost, the next position counts the records that were deleted."""
    topic = ListedTopic([1_000] * 4, [1_000] * 3, [])
    start = Position()
    end = topic.admission().plan(start, WALL_MS)
    topic.append(0, 1_001, 1_002, 1_003)
    for log, first in zip(topic.logs, firsts, strict=True):
        log.first = first
    settings = SourceSettings(KafkaSettings("", "frames"), skip_lost=True)
    reader = SdsFramesReader(settings)
    monkeypatch.setattr(reader, "_offsets", topic)
    assert ranges_of(reader, start, end) == ranges
    after = Position.from_json(reader.latestOffset(end.to_json(), None))  # type: ignore[arg-type]
    assert after.skipped == lost + max(0, firsts[0] - 4)


def test_planned_batch_is_read_without_records_that_an_election_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The partition ends before the batch, or where records behind it were known."""
    topic = ListedTopic([1_000] * 4, [1_000] * 3)
    end = topic.admission(6).plan(Position(), WALL_MS)
    assert end.next_offsets() == {0: 4, 1: 2}
    del topic.logs[0].entries[1:], topic.logs[1].entries[2:]
    settings = SourceSettings(KafkaSettings("", "frames"), skip_lost=True)
    reader = SdsFramesReader(settings)
    monkeypatch.setattr(reader, "_offsets", topic)
    (task,) = reader.partitions(Position().to_json(), end.to_json())
    assert sorted((*one.offsets, one.behind.end) for one in task.ranges) == [
        (0, 0, 1, 1),
        (1, 0, 2, 2),
    ]


@pytest.mark.parametrize("skip_lost", [False, True])
def test_records_that_are_deleted_while_a_batch_reads_them(
    monkeypatch: pytest.MonkeyPatch, skip_lost: bool
) -> None:
    """With skip_lost, the query starts again; otherwise, a person must decide."""

    def fetch(*args: object) -> None:
        raise RecordsLost("frames", 0, 0, 4)

    monkeypatch.setattr("streaming.source.fetch", fetch)
    topic = ListedTopic([1_000] * 4)
    end = topic.admission().plan(Position(), WALL_MS)
    settings = SourceSettings(KafkaSettings("", "frames"), skip_lost=skip_lost)
    reader = SdsFramesReader(settings)
    monkeypatch.setattr(reader, "_offsets", topic)
    (task,) = reader.partitions(Position().to_json(), end.to_json())
    with pytest.raises(LookupError) as caught:
        list(reader.read(task))
    (note,) = caught.value.__notes__
    meaning = json.loads(note.partition(": ")[2])
    assert (meaning["passes"], meaning["final"]) == (skip_lost, not skip_lost)
    assert ("--on-lost-records" in meaning["cause"]) is not skip_lost


@pytest.mark.kafka
@pytest.mark.parametrize("skip_lost", [False, True])
def test_batch_whose_first_records_are_deleted_fails_or_continues(
    kafka_topic: TopicMaker, skip_lost: bool
) -> None:
    """For example, the job was killed in a batch, and starts days later."""
    topic = kafka_topic()
    for _ in range(10):
        topic.write(time_ms=5_000)
    reader = SdsFramesReader(SourceSettings(topic.settings, skip_lost=skip_lost))
    try:
        start = reader.initialOffset()
        end = reader.latestOffset(start, None)  # type: ignore[arg-type]
        topic.delete_before(4)
        assert letters_in(reader, start, end) == (6 if skip_lost else None)
    finally:
        reader.stop()


def letters_in(
    reader: SdsFramesReader, start: dict[str, Any], end: dict[str, Any]
) -> int | None:
    """Number of undecodable records in a batch; None if records of it are lost."""
    digests = []
    try:
        for task in reader.partitions(start, end):
            for batch in reader.read(task):
                digests += batch.to_pylist()
    except RecordsLost:
        return None
    (letters,) = (one for one in digests if one["key"] == DEAD_LETTERS.key("0"))
    return len(msgspec.msgpack.decode(letters["digest"], type=DeadLetterDigest).letters)
