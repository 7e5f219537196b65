"""Incidents in the time of the records, and an unacknowledged message."""

from __future__ import annotations

from sds_core.observer.incidents import Incident
from tests.support.channel import Channel
from tests.support.frames import START_MS

T0 = 60_000
ACK_DEADLINE = T0 + 120_000

LOST, UNDELIVERED, UNACKNOWLEDGED = "lost", "undelivered", "unacknowledged"


def latest(channel: Channel, kind: str, message_id: str) -> Incident:
    """The latest record of an incident, in the time of the records."""
    one = channel.incidents[kind, message_id]
    assert (one.kind.value, one.message_id) == (kind, message_id)
    return Incident(
        one.kind,
        one.message_id,
        one.sender,
        one.since_ms - START_MS,
        one.found_ms - START_MS,
        None if one.ended_ms is None else one.ended_ms - START_MS,
        {name: ms - START_MS for name, ms in one.lacking.items()},
        one.named_by,
        one.waku_hash,
        one.hint,
    )


def miss(channel: Channel) -> None:
    """Alice sends `m`; bob speaks after it and acknowledges nothing."""
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 1_000, lamport=1_001)
