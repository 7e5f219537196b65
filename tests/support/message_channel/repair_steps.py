"""Frames with gaps and requests, and what a participant requests and remembers."""

from __future__ import annotations

from sds_core.message_channel import MessageChannel, Profile, Step, snapshot
from sds_core.message_channel.repair import request_offset_ms
from sds_core.wire import Frame
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import CHANNEL, SPEC, frame_of

FRAMES = FrameFactory(CHANNEL)
T_MAX_MS = SPEC.t_max_ms
LATER = START_MS + T_MAX_MS
"""When every request that was queued at the start is due."""


def state(channel: MessageChannel) -> snapshot.State:
    """All that a participant remembers."""
    return snapshot.SEAL.unpack(channel.snapshot())


def t_req_ms(
    name: str, message_id: str, now_ms: int = START_MS, profile: Profile = SPEC
) -> int:
    """When a participant asks for what it misses since now."""
    return now_ms + request_offset_ms(name, message_id, profile)


def missing(*message_ids: str, by: str = "alice", message_id: str = "last") -> Frame:
    """A message of alice that names others of hers."""
    return FRAMES.content(
        message_id, by, history=[(one, "alice") for one in message_ids]
    )


def asking(*message_ids: str, by: str = "erin", sender: str = "alice") -> Frame:
    """A sync message that requests messages."""
    return FRAMES.sync(by, requests=[(one, sender) for one in message_ids])


def requested(step: Step) -> list[str]:
    """Ids that the one frame of a step requests."""
    return [one.message_id for one in frame_of(step).repair_request]


def by_t_req(name: str, message_ids: list[str]) -> list[str]:
    """The ids in the order in which a participant asks for them."""
    return sorted(message_ids, key=lambda one: request_offset_ms(name, one, SPEC))


GAPS = [f"m{number}" for number in range(1, 6)]
