"""The state of a channel as bytes.

It is sealed (`sds_core.sealed`). New fields go to the end and have a default; any other
change raises the version.
"""

from __future__ import annotations

from math import inf

import msgspec

from sds_core.reliable_channel.assembly import StoredSegment
from sds_core.reliable_channel.chunks import Message
from sds_core.reliable_channel.errors import StateError
from sds_core.reliable_channel.fetching import FetchingState
from sds_core.reliable_channel.inputs import Arrived
from sds_core.reliable_channel.outward import OutwardState
from sds_core.reliable_channel.retries import Retry
from sds_core.sealed import BrokenSeal, seal, unseal

VERSION = 1


class RunningState(msgspec.Struct, array_like=True, kw_only=True):
    """What ends with the process: `Restarted` resets it. Times are Unix ms."""

    is_started: bool
    is_online: bool
    waits_for_budget: bool
    processed_ms: int | float
    sweep_ms: int | float
    repair_ms: int | float
    sync_ms: int | float
    latest_sync_ms: int | float
    fetching: FetchingState
    # Of states before 0.15.0, which had no such time: not before the next frame.
    requests_sync_ms: int | float = inf


class ChannelState(msgspec.Struct, array_like=True, kw_only=True):
    """Everything that a channel remembers.

    Attributes:
        content_topic: Topic of its messages.
        participant: Snapshot of the SDS participant.
        now_ms: Time of the last input, Unix ms.
        seed: Seed of everything random from here on.
        messages: Own messages, oldest first.
        retries: Their chunks that may be sent again, by SDS id.
        outward: Frames on their way out.
        intake: Received messages before they are processed.
        segments: Segments of incomplete payloads.
        budget: State of the rate limit.
        running: Timers and connections. A journal continues from them.
        ephemerals: Waku hashes of received ephemeral messages, oldest first.
    """

    content_topic: str
    participant: bytes
    now_ms: int
    seed: bytes
    messages: list[Message]
    retries: dict[str, Retry]
    outward: OutwardState
    intake: list[Arrived]
    segments: list[StoredSegment]
    budget: bytes
    running: RunningState
    ephemerals: list[bytes] = []


_decoder = msgspec.msgpack.Decoder(ChannelState)


def pack(state: ChannelState) -> bytes:
    """Return a state as bytes."""
    return seal(VERSION, state)


def unpack(blob: bytes) -> ChannelState:
    """Read what `pack` returned.

    Raises:
        StateError: The bytes are not a state, damaged, or of a later version.
    """
    try:
        return unseal(VERSION, blob, _decoder)
    except BrokenSeal as error:
        raise StateError(str(error)) from error
