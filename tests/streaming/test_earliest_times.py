"""Records that are stamped with the first moment of Unix time, or before it."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.kafka.producer import TopicRecord
from tests.support.frames import SECOND, START_MS, FrameFactory, value_of
from tests.support.monitor import Monitor
from tests.support.mvds.traffic import GROUP_NAME, sent

AT_FIRST = pytest.mark.parametrize("first_ms", [0, -1, -(2**63), 1, START_MS])
"""Time of the first records; -1 is that of records that have no time."""


def _payload(time_ms: int, *args: Any, **records: Any) -> TopicRecord:
    _, sender, receiver, value, _, _ = sent(0, *args, **records)
    names = (("peer", sender.encode()), ("to", receiver.encode()))
    return TopicRecord(0, time_ms, None, value, (("protocol", b"mvds"), *names))


@AT_FIRST
def test_message_of_mvds_is_addressed_once(first_ms: int) -> None:
    """Its incident begins when the MESSAGE was sent, and no batch fails."""
    begin_ms = max(first_ms, 0)
    monitor = Monitor(restarts=True)
    records = [
        _payload(first_ms, "a", "b", messages=[1]),
        _payload(first_ms, "a", "b", messages=[1]),
        _payload(begin_ms + 7 * SECOND, "b", "a", messages=[2]),
    ]
    monitor.read(records, begin_ms + 7 * SECOND)
    monitor.read([], begin_ms + 200 * SECOND)
    group = monitor.report()["views"]["mvds"]["views"][GROUP_NAME]
    assert group["addressed"] == 2
    assert (group["unacknowledged"], group["unwitnessed"]) == (1, 1)
    assert group["in_flight"] == 0


@AT_FIRST
def test_participant_that_spoke_at_first_returns_from_a_silence(first_ms: int) -> None:
    """It may have been offline, so it does not show that a message was lost."""
    begin_ms = max(first_ms, 0)
    frames = FrameFactory("channel")
    monitor = Monitor(restarts=True)
    records = [
        TopicRecord(0, time_ms, b"channel", value_of(frame), ())
        for time_ms, frame in (
            (first_ms, frames.ephemeral("alice")),
            (begin_ms + 310 * SECOND, frames.content("m", "bob", 1)),
            (begin_ms + 320 * SECOND, frames.content("n", "alice", 2)),
        )
    ]
    monitor.read(records, begin_ms + 320 * SECOND)
    monitor.read([], begin_ms + 500 * SECOND)
    channel = monitor.report()["channels"]["channel"]
    assert (channel["unacknowledged"], channel["unwitnessed"]) == (0, 2)


@AT_FIRST
def test_tap_that_was_heard_at_first_is_known(first_ms: int) -> None:
    """Its silence afterwards is a capture gap."""
    begin_ms = max(first_ms, 0)
    monitor = Monitor(restarts=True)
    headers = (("kind", b"heartbeat"), ("observer", b"tap"), ("seq", b"0"))
    for time_ms in (first_ms, begin_ms + 60 * SECOND, begin_ms + 61 * SECOND):
        monitor.read([TopicRecord(0, time_ms, None, b"", headers)], max(time_ms, 0))
    (tap,) = monitor.snapshot.taps.values()
    assert tap.last_hole_ms == begin_ms + 60 * SECOND
