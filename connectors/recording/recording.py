"""The recording that ships with the package, and its truth (see README.md here)."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of the truth beside what the monitor found.

    Attributes:
        channel: Channel id; empty for the totals.
        figure: Its name in the report, nested names joined by dots.
        truth: As the recording's script computed it.
        found: As reported.
    """

    channel: str
    figure: str
    truth: object
    found: object

    @property
    def same(self) -> bool:
        """Whether the monitor is right."""
        return self.truth == self.found


def compare(
    truth: Mapping[str, Any], report: Mapping[str, Any]
) -> Iterator[Comparison]:
    """Every figure of a truth beside the report's, totals first."""
    latencies = [
        pair for one in truth["channels"].values() for pair in one["ack_latencies"]
    ]
    totals = truth["totals"] | {"ack_latencies": latencies}
    yield from _compared("", totals, report["totals"])
    for channel, figures in truth["channels"].items():
        yield from _compared(channel, figures, report["channels"].get(channel, {}))


def _compared(
    channel: str, truth: Mapping[str, Any], found: Mapping[str, Any]
) -> Iterator[Comparison]:
    for figure, value in _flat(truth):
        if figure == "ack_latencies":
            # The truth lists each; the report without detail has count and sum.
            yield Comparison(
                channel,
                "ack_latency_ms.definite.sum",
                sum(latency for _, latency in value),
                _at(found, "ack_latency_ms.definite.sum"),
            )
        elif not figure.startswith("sender_side"):
            yield Comparison(channel, figure, value, _at(found, figure))


def _flat(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _at(figures: Any, path: str) -> Any:
    for name in path.split("."):
        figures = figures.get(name) if isinstance(figures, Mapping) else None
    return figures


def _parsed(line: Mapping[str, Any]) -> TopicRecord:
    return TopicRecord(
        line["partition"],
        line["timestamp_ms"],
        None if line["key"] is None else line["key"].encode(),
        bytes.fromhex(line["value_hex"]),
        tuple((name, value.encode()) for name, value in line["headers"]),
    )
