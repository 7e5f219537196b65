"""The monitor reads recorded traffic of nim-sds without a difference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.files.record_file import read_records
from connectors.kafka.producer import TopicRecord, topic_record
from sds_core.wire import FrameKind, decode, encode
from tests.support.monitor import report_of

VECTORS = Path(__file__).parents[1] / "vectors" / "nim"


@pytest.fixture(scope="module")
def recording() -> list[TopicRecord]:
    """Twenty minutes of five participants."""
    records = read_records(VECTORS / "library.jsonl.xz")
    return [topic_record(record, record.partition) for record in records]


@pytest.fixture(scope="module")
def without_syncs(recording: list[TopicRecord]) -> dict[str, Any]:
    """The report on the recording as it is."""
    totals: dict[str, Any] = report_of(recording)["totals"]
    return totals


def as_sync(record: TopicRecord, divisor: int) -> TopicRecord:
    """Take the content out of one message in so many, in all its copies."""
    if not record.value:
        return record
    frame = decode(record.value).detached()
    if int(frame.message_id[:8], 16) % divisor:
        return record
    return replace(
        record, value=encode(frame._replace(kind=FrameKind.SYNC, content=b""))
    )


def test_figures_equal_what_the_participants_did(
    without_syncs: dict[str, Any],
) -> None:
    """Each message, rebroadcast and request whose frame the tap saw."""
    truth = json.loads((VECTORS / "library.truth.json").read_text("utf-8"))
    assert without_syncs["messages"] == truth["messages"]
    assert without_syncs["rebroadcasts"] == truth["rebroadcasts"]
    assert without_syncs["repair"]["requests"] == truth["requests"]
    assert without_syncs["gaps"]["opened"] == 0


@pytest.mark.parametrize("divisor", [1, 2, 5])
def test_sync_frames_of_an_application_are_read_like_its_messages(
    recording: list[TopicRecord], without_syncs: dict[str, Any], divisor: int
) -> None:
    """What a tap has shown is not missing, whatever its kind, and its repair counts."""
    found = report_of([as_sync(one, divisor) for one in recording])["totals"]
    assert found["frames"]["sync"] > 50
    for figure in ("gaps", "repair", "rebroadcasts", "repair_response_ms"):
        assert found[figure] == without_syncs[figure]
