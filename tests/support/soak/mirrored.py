"""Whether a mirror that was killed has copied all that a node ever offered."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tests.support.soak.breaks import Break, Kill
from tests.support.soak.stage import TapRecord
from tests.support.waku_node import ConformanceNode, Endpoint

STORE_S = 26.0
"""Twice the interval in which a mirror reads the store, and what it leaves to
listeners: after so long it has what it could not hear, seconds."""


def assert_all_mirrored(
    node: ConformanceNode,
    records: Sequence[TapRecord],
    kills: Sequence[Kill],
    frames: Collection[bytes],
) -> None:
    """All frames that were ever offered are in Kafka, but for pages in flight at kills.

    Args:
        node: What offered them.
        records: What the mirror wrote.
        kills: When it was killed.
        frames: Hashes of the messages that hold frames.
    """
    mirrored = {record.message_hash for record in records if record.is_frame}
    offered = node.offered_to_anyone() & set(frames)
    assert mirrored <= offered
    lost = offered - mirrored
    assert lost <= node.only_in_pages()
    pages = {
        one.at_ns
        for one in node.handed_out
        if one.hash in lost and one.endpoint is Endpoint.RELAY
    }
    calls = [one.at_ns for one in node.calls if one.endpoint is Endpoint.RELAY]
    last_before_kills = {
        max((at_ns for at_ns in calls if at_ns / 1e6 <= kill.until_ms), default=0)
        for kill in kills
    }
    assert pages <= last_before_kills


def assert_holes(
    missing: Sequence[int], records: Sequence[TapRecord], breaks: Sequence[Break]
) -> None:
    """A hole for each time that the node dropped messages, and no other."""
    times = {record.seq: record.at_ms for record in records if record.is_frame}
    # Numbers that are missing one after the other are one hole.
    begins = [times[number - 1] for number in missing if number - 1 in times]
    ends = [times[number + 1] for number in missing if number + 1 in times]
    holes = list(zip(begins, ends, strict=True))
    assert any(one.has_dropped for one in breaks)
    for one in breaks:
        assert not one.has_dropped or any(one.meets(*hole) for hole in holes), one
    for hole in holes:
        assert any(one.meets(*hole) for one in breaks), (hole, breaks)
