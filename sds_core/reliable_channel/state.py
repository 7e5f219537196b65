"""Encodes the state of a channel as bytes.

The bytes have a version and a checksum (`sds_core.sealed`). To add a field to a class,
append the field at the end, with a default. Every other change needs a new `VERSION`.
"""

from __future__ import annotations

from enum import IntEnum
from math import inf

import msgspec

from sds_core.message_channel import Profile
from sds_core.reliable_channel.assembly import StoredSegment
from sds_core.reliable_channel.errors import StateError
from sds_core.reliable_channel.events import ChunkInfo
from sds_core.reliable_channel.fetching import FetchingState
from sds_core.reliable_channel.inputs import Arrived
from sds_core.reliable_channel.options import ReliableChannelOptions
from sds_core.reliable_channel.outward import OutwardState
from sds_core.reliable_channel.retries import Retry
from sds_core.reliable_channel.segmentation import Finished
from sds_core.sealed import Seal

# Our messages and the states of their chunks. Every chunk is an SDS message with its
# own id. An event has the id of the whole message, and lists all chunks that have
# reached the event's stage (RELIABLE-CHANNEL-API, "Event lifecycle").


class Stage(IntEnum):
    """A stage of a chunk. The value is the stage's index in `Message.stages`."""

    SENDING = 0
    SENT = 1
    POSSIBLY_ACKNOWLEDGED = 2
    ACKNOWLEDGED = 3
    FAILED = 4
    EXHAUSTED = 5


class Message(msgspec.Struct, array_like=True):
    """One of our messages.

    Attributes:
        message_id: The message's id in the application's calls and events.
        sds_ids: The SDS id of each chunk, in order; an empty string for a chunk that
            has no frame yet.
        stages: For each `Stage`, the chunks that have reached it.
    """

    message_id: str
    sds_ids: list[str]
    stages: list[set[int]] = msgspec.field(
        default_factory=lambda: [set() for _ in Stage]
    )

    def mark(self, chunk: int, stage: Stage) -> ChunkInfo:
        """Record a chunk's stage, and return all chunks that have reached the stage."""
        self.stages[stage].add(chunk)
        return ChunkInfo(tuple(sorted(self.stages[stage])), len(self.sds_ids))

    @property
    def is_settled(self) -> bool:
        """Whether each chunk has reached a final stage: acknowledged or failed."""
        done = self.stages[Stage.ACKNOWLEDGED] | self.stages[Stage.FAILED]
        return len(done) == len(self.sds_ids)


class Chunks:
    """Our messages with a chunk neither acknowledged nor failed, oldest first."""

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._message_of: dict[str, tuple[Message, int]] = {}

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._messages)

    def add(self, message: Message) -> None:
        """Track a message."""
        self._messages[message.message_id] = message
        for chunk, sds_id in enumerate(message.sds_ids):
            if sds_id:
                self._message_of[sds_id] = (message, chunk)

    def name(self, message: Message, chunk: int, sds_id: str) -> None:
        """Record the SDS id of a chunk of a tracked message."""
        message.sds_ids[chunk] = sds_id
        self._message_of[sds_id] = (message, chunk)

    def get(self, message_id: str) -> Message | None:
        """Return a message; None if it is not tracked."""
        return self._messages.get(message_id)

    def find(self, sds_id: str) -> tuple[Message, int] | None:
        """Return a chunk's message and index; None if the chunk is not tracked."""
        return self._message_of.get(sds_id)

    def drop(self, message: Message) -> None:
        """Forget a message."""
        del self._messages[message.message_id]
        for sds_id in filter(None, message.sds_ids):
            del self._message_of[sds_id]

    def oldest(self) -> Message:
        """Return the message that was added first."""
        return next(iter(self._messages.values()))

    def state(self) -> list[Message]:
        """Return all messages, for a snapshot."""
        return list(self._messages.values())

    def restore(self, messages: list[Message]) -> None:
        """Restore the result of `state`."""
        for message in messages:
            self.add(message)


VERSION = 1


class RunningState(msgspec.Struct, array_like=True, kw_only=True):
    """The state of a channel's timers and connections. Times are Unix ms.

    After a restart, the input `Restarted` sets the channel to stopped and offline.
    """

    is_started: bool
    is_online: bool
    waits_for_budget: bool
    processed_ms: int | float
    sweep_ms: int | float
    repair_ms: int | float
    sync_ms: int | float
    latest_sync_ms: int | float
    fetching: FetchingState
    # A state that was stored by a release before 0.15.0 lacks this time. The time is
    # then inf until our next frame.
    requests_sync_ms: int | float = inf


class ChannelState(msgspec.Struct, array_like=True, kw_only=True):
    """The whole state of a channel.

    Attributes:
        seed: Seed of the random values that the channel draws after the snapshot.
        retries: Chunks that may be sent again, by SDS id.
        running: Timers and connections at the time of the snapshot. A replay of the
            journal starts with this state.
        ephemerals: Waku hashes of received ephemeral messages, oldest first.
        finished: Complete payloads whose other segments may still arrive. A state that
            was stored by a release before 1.1.0 has none.
        options: Options of the channel, with which a replay of the journal starts. A
            state that was stored by a release before 1.1.0 lacks them.
        profile: Profile of the SDS participant, with which a replay of the journal
            starts. A state that was stored by a release before 1.2.0 lacks it; see
            `ReliableChannelOptions.earlier_participant_profile`.
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
    finished: list[Finished] = []
    options: ReliableChannelOptions | None = None
    profile: Profile | None = None


SEAL = Seal(VERSION, ChannelState, StateError)
"""Encodes states as bytes."""
