"""The recording that ships with the package, and its truth (see README.md here)."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

from connectors.kafka.producer import TopicRecord

_FRAMES = "recorded.jsonl.xz"
_TRUTH = "recorded.truth.json"


def load_recording() -> list[TopicRecord]:
    """The records in order of time."""
    packed = files(__package__).joinpath(_FRAMES)
    with packed.open("rb") as raw, lzma.open(raw, "rt") as lines:
        return [_parsed(json.loads(line)) for line in lines]


def load_truth() -> dict[str, Any]:
    """What a correct monitor reports of the recording."""
    truth = json.loads(files(__package__).joinpath(_TRUTH).read_text())
    assert isinstance(truth, dict)  # noqa: S101 - our own file
    return truth


def restamped(records: Iterable[TopicRecord], end_ms: int) -> Iterator[TopicRecord]:
    """The same records, moved in time so that the last lies at `end_ms`."""
    records = list(records)
    shift_ms = end_ms - max(record.timestamp_ms for record in records)
    for record in records:
        yield replace(record, timestamp_ms=record.timestamp_ms + shift_ms)


def _parsed(line: Mapping[str, Any]) -> TopicRecord:
    return TopicRecord(
        line["partition"],
        line["timestamp_ms"],
        None if line["key"] is None else line["key"].encode(),
        bytes.fromhex(line["value_hex"]),
        tuple((name, value.encode()) for name, value in line["headers"]),
    )
