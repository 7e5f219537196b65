"""The way of a file of records into a topic."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from connectors.files.record_file import UnreadableFile, read_records
from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.rewrite import kept_partition, topic_record
from connectors.kafka.settings import MAX_PARTITIONS, KafkaSettings
from connectors.kafka.topics import ensure_frames_topic

_AHEAD_MS = 3_600_000
"""Kafka's own default of message.timestamp.after.max.ms."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a file of records holds.

    Attributes:
        records: How many.
        partitions: How many its topic had, as far as the records tell.
        first_ms, last_ms: Least and greatest record time, Unix ms; 0 without records.
    """

    records: int = 0
    partitions: int = 0
    first_ms: int = 0
    last_ms: int = 0


def survey_file(path: Path) -> Survey:
    """Read all of a file, to know what it holds and that every line can be read.

    Raises:
        UnreadableFile: One cannot.
    """
    records = partitions = 0
    first_ms, last_ms = 2**63, -(2**63)
    for record in read_records(path):
        records += 1
        partitions = max(partitions, record.partition + 1)
        first_ms = min(first_ms, record.timestamp_ms)
        last_ms = max(last_ms, record.timestamp_ms)
    return Survey(records, partitions, first_ms, last_ms) if records else Survey()


def import_file(
    path: Path,
    settings: KafkaSettings,
    *,
    now_ms: int,
    speed: float = 0.0,
    stop: threading.Event | None = None,
    partitions: int | None = None,
    restamp: bool = False,
) -> int:
    """Write a file's records to the topic of frames; returns how many.

    The file is read twice: a bad line is found before anything is written. Records keep
    key, value, time and headers, and their partition if the topic has as many
    (`kept_partition`).

    Args:
        path: The file.
        settings: Cluster and topic; the topic is made if it is missing.
        now_ms: Wall time, Unix ms.
        speed: Seconds of record time per second; 0 writes as fast as can be.
        stop: Set to end early.
        partitions: Of the topic, if it is made; as many as the file tells of if None.
        restamp: Move all times by the same, so that the last record is written at
            its own time.

    Raises:
        UnreadableFile: A line holds no record, a record lies too far in the future, or
            in a partition that no topic is made for; nothing was written.
        InvalidTopic: Kafka takes no topic of this name.
        KafkaUnreachable: No broker answered, or not to every record.
    """
    survey = survey_file(path)
    if not survey.records:
        return 0
    if partitions is None and survey.partitions > MAX_PARTITIONS:
        detail = (
            f"a record lies in partition {survey.partitions - 1}, and a topic is made "
            f"with at most {MAX_PARTITIONS:,}: give --partitions"
        )
        raise UnreadableFile(path, 0, detail)
    shift_ms = 0
    if restamp:
        shift_ms = _shift_ms(survey, speed, now_ms)
    else:
        _check_times(path, survey, speed, now_ms)
    count = ensure_frames_topic(settings, partitions or survey.partitions)
    return write(_records(path, count, shift_ms), settings, speed, stop)


def _check_times(path: Path, survey: Survey, speed: float, now_ms: int) -> None:
    """Refuse what the broker would refuse in the middle of it.

    Raises:
        UnreadableFile: A record would be written too long before its time.
    """
    ahead_ms = -_shift_ms(survey, speed, now_ms)
    if ahead_ms > _AHEAD_MS:
        detail = (
            f"with timestamps up to {survey.last_ms} records would be written "
            f"{ahead_ms // 1000:,} s before their time, and Kafka takes "
            f"{_AHEAD_MS // 1000:,} s: move all times by --restamp, or set the clock"
        )
        raise UnreadableFile(path, 0, detail)


def _shift_ms(survey: Survey, speed: float, now_ms: int) -> int:
    """How far to move the times. Slower than life the first record is of now."""
    lasts_ms = survey.last_ms - survey.first_ms
    takes_ms = round(lasts_ms / speed) if speed else 0
    return now_ms - max(0, lasts_ms - takes_ms) - survey.first_ms


def _records(path: Path, partitions: int, shift_ms: int) -> Iterator[TopicRecord]:
    for record in read_records(path):
        kept = topic_record(record, kept_partition(record, partitions))
        yield replace(kept, timestamp_ms=kept.timestamp_ms + shift_ms)
