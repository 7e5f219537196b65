"""Loads the shipped recording, and the correct report about it (README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.resources import as_file, files
from typing import Any

from connectors.files.record_file import read_records
from connectors.kafka.producer import TopicRecord, topic_record

_FRAMES = "recorded.jsonl.xz"
_TRUTH = "recorded.truth.json"


def load_recording() -> list[TopicRecord]:
    """Return the recording's records, oldest first."""
    with as_file(files(__package__).joinpath(_FRAMES)) as path:
        return [topic_record(record, record.partition) for record in read_records(path)]


def load_truth() -> dict[str, Any]:
    """Return the report that a correct monitor produces for the recording."""
    truth = json.loads(files(__package__).joinpath(_TRUTH).read_text())
    assert isinstance(truth, dict)  # noqa: S101 - our own file
    return truth


def restamped(records: Iterable[TopicRecord], end_ms: int) -> Iterator[TopicRecord]:
    """Yield the records with shifted times: the latest time is `end_ms`, Unix ms."""
    records = list(records)
    shift_ms = end_ms - max(record.timestamp_ms for record in records)
    for record in records:
        yield replace(record, timestamp_ms=record.timestamp_ms + shift_ms)
