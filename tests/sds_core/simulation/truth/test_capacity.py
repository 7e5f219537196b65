"""Bytes in the truth (docs/figures.md, 9)."""

from __future__ import annotations

from typing import Any

import pytest

from sds_core.simulation.truth.composition import sizes_of
from sds_core.wire import Dialect, PartSizes
from sds_core.wire.proto import sds_nim_pb2, sds_spec_pb2
from tests.support.simulation.simulated import Simulated

HORIZON = 3_600_000


@pytest.mark.parametrize(
    ("dialect", "protocol"), [(Dialect.SPEC, sds_spec_pb2), (Dialect.NIM, sds_nim_pb2)]
)
def test_sizes_are_those_of_whole_fields(dialect: Dialect, protocol: Any) -> None:
    """Fields written one by one and concatenated make a frame."""
    entries = [
        protocol.HistoryEntry(message_id="a" * 64, retrieval_hint=b"hint"),
        protocol.HistoryEntry(message_id="b", sender_id="c" * 200),
    ]
    parts = {
        "content": {"content": b"text" * 50},
        "history": {"causal_history": entries},
        "bloom": {"bloom_filter": bytes(20_000)},
        "repair": {"repair_request": entries[:1]},
        "other": {
            "message_id": "m",
            "channel_id": "channel",
            "sender_id": "ana",
            "lamport_timestamp": 1 << 40,
        },
    }
    values = {
        part: protocol.SdsMessage(**fields).SerializeToString()
        for part, fields in parts.items()
    }
    expected = PartSizes(**{part: len(value) for part, value in values.items()})
    assert sizes_of(dialect, b"".join(values.values())) == expected


def test_empty_field_that_is_written_has_its_size() -> None:
    """As nim-sds writes content and filter: a tag and a length of 0."""
    it = Simulated()
    sent = it.sync("ana", at=0, dialect=Dialect.NIM, has_filter=False)
    assert it.figures("bytes") == {
        "content": 2,
        "history": 0,
        "bloom": 2,
        "repair": 0,
        "other": len(sent.value) - 4,
    }


def test_every_frame_that_is_no_replica_counts() -> None:
    """Rebroadcasts, collisions and copies after the horizon too."""
    it = Simulated()
    sent = it.content("m", "ana", at=0, history=["a", "b"], requests=["c"])
    it.sight(sent, at=100, tap="other")
    counted = [
        sent,
        it.again(sent, at=1_000),
        it.content("m", "ben", at=2_000),
        it.sync("cem", at=3_000),
        it.ephemeral("dov", at=4_000),
        it.again(sent, at=HORIZON + 1),
    ]
    it.sync("cem", at=HORIZON + 2, seen=False)
    figures = it.figures("bytes", "repair_bytes")
    assert sum(figures["bytes"].values()) == sum(len(one.value) for one in counted)
    one = sizes_of(Dialect.SPEC, sent.value)
    assert figures["bytes"]["history"] == 3 * one.history > 0
    assert figures["bytes"]["repair"] == 3 * one.repair > 0
    assert figures["repair_bytes"] == {"request": 3 * one.repair, "response": 0}


def test_response_counts_with_its_whole_frame() -> None:
    """Answers and redundant ones, but no copy before the request or too late."""
    it = Simulated()
    sent = it.content("m", "ana", at=0, text=b"text" * 100)
    it.sync("ben", at=1_000, requests=["m", "n"])
    it.again(sent, at=2_000)
    it.again(sent, at=3_000)
    first_copy = it.content("n", "cem", at=4_000)
    it.again(sent, at=200_000)
    assert it.repair()["responses"] == 3
    response = 2 * len(sent.value) + len(first_copy.value)
    assert it.figures("repair_bytes")["response"] == response
