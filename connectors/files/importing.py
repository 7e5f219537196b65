"""Imports a file of records into a topic (docs/files.md)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from connectors.files.record_file import UnreadableFile, read_records
from connectors.kafka.producer import (
    Acknowledgements,
    TopicRecord,
    target_partition,
    topic_record,
    write,
)
from connectors.kafka.settings import MAX_PARTITIONS, KafkaSettings
from connectors.kafka.topics import ensure_frames_topic

_MAX_AHEAD_MS = 3_600_000
"""How far a record's time may be in the future when the record is written.

The value is Kafka's default for message.timestamp.after.max.ms.
"""


@dataclass(frozen=True, slots=True)
class Survey:
    """Summary of a file of records.

    Attributes:
        partitions: Highest partition number of a record, plus 1; 0 if the file has no
            records.
        first_ms, last_ms: Minimum and maximum record time, Unix ms; 0 if the file has
            no records.
    """

    records: int = 0
    partitions: int = 0
    first_ms: int = 0
    last_ms: int = 0


def survey_file(path: Path) -> Survey:
    """Read a whole file, check every line, and return a summary of the records.

    Raises:
        UnreadableFile: The file cannot be read, or a line holds no record.
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
    acknowledged: Acknowledgements | None = None,
) -> int:
    """Write a file's records to the topic of frames; return how many were written.

    The file is read twice: all lines are checked before the first record is written.
    A record keeps its key, value and headers; it keeps its time unless `restamp` is
    set. It keeps its partition if the topic has that partition (see
    `target_partition`).

    Args:
        path: The file.
        settings: Cluster and topic to write to; a missing topic is created.
        now_ms: Wall time, Unix ms.
        speed: Seconds of record time per second of wall time; 0 writes as fast as
            possible.
        stop: If this event is set, the import ends early.
        partitions: Number of partitions if the topic is created. If None, the topic
            gets as many partitions as the file's records need.
        restamp: Shift all record times by the same amount, so that the last record gets
            the time at which it is written. If `speed` is between 0 and 1, the import
            is slower than real time. The first record, instead of the last, then gets
            the time at which it is written.
        acknowledged: Counts the acknowledged records, even if an error is raised.

    Raises:
        UnreadableFile: The file cannot be read, or can be read only once; a line holds
            no record; a record's time is too far in the future; or the records need
            more than `MAX_PARTITIONS` partitions, and `partitions` is None. Nothing was
            written.
        InvalidTopic: Kafka does not allow the topic's name.
        KafkaUnreachable: No broker answered, or not every record was acknowledged.
    """
    if path.exists() and not path.is_file():
        detail = (
            "is a pipe or a device, but the file is read twice: give the name of a "
            "regular file"
        )
        raise UnreadableFile(path, 0, detail)
    survey = survey_file(path)
    if not survey.records:
        return 0
    if partitions is None and survey.partitions > MAX_PARTITIONS:
        detail = (
            f"a record has partition {survey.partitions - 1}, but a new topic gets at "
            f"most {MAX_PARTITIONS:,} partitions: give --partitions"
        )
        raise UnreadableFile(path, 0, detail)
    shift_ms = _shift_ms(survey, speed, now_ms)
    if not restamp:
        _check_ahead(path, survey.last_ms, -shift_ms)
        shift_ms = 0
    count = ensure_frames_topic(settings, partitions or survey.partitions)
    records = _records(path, count, shift_ms)
    return write(records, settings, speed, stop, acknowledged)


def _check_ahead(path: Path, last_ms: int, ahead_ms: int) -> None:
    if ahead_ms > _MAX_AHEAD_MS:
        detail = (
            f"the timestamp {last_ms} of a record would be {ahead_ms // 1000:,} s in "
            f"the future, but Kafka allows at most {_MAX_AHEAD_MS // 1000:,} s: shift "
            "all times with --restamp, or correct this machine's clock"
        )
        raise UnreadableFile(path, 0, detail)


def _shift_ms(survey: Survey, speed: float, now_ms: int) -> int:
    # After the shift, no record may have a time later than the time at which it is
    # written. The largest such shift makes the two times equal for the last record or,
    # if the import is slower than real time, for the first record.
    recorded_ms = survey.last_ms - survey.first_ms
    import_ms = min(recorded_ms, recorded_ms / speed) if speed else 0
    return now_ms - (recorded_ms - round(import_ms)) - survey.first_ms


def _records(path: Path, partitions: int, shift_ms: int) -> Iterator[TopicRecord]:
    for record in read_records(path):
        copy = topic_record(record, target_partition(record, partitions))
        yield replace(copy, timestamp_ms=copy.timestamp_ms + shift_ms)
