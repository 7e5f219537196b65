"""Our messages and how far their chunks have got, for `chunk_info`.

Every chunk is an SDS message with an id of its own; events carry the id of the whole
message, and list the chunks cumulatively (document, "Event lifecycle").
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from sds_core.reliable_channel.events import ChunkInfo


class Stage(IntEnum):
    """What can be true of a chunk; the value is its place in `Message.stages`."""

    SENDING = 0
    SENT = 1
    POSSIBLY_ACKNOWLEDGED = 2
    ACKNOWLEDGED = 3
    FAILED = 4
    EXHAUSTED = 5


class Message(msgspec.Struct, array_like=True):
    """One message of ours.

    Attributes:
        message_id: Id for the application.
        sds_ids: Ids of its chunks, by index; empty for one that has no frame yet.
        stages: For each `Stage`, the chunks of which it is true.
    """

    message_id: str
    sds_ids: list[str]
    stages: list[set[int]] = msgspec.field(
        default_factory=lambda: [set() for _ in Stage]
    )

    def mark(self, chunk: int, stage: Stage) -> ChunkInfo:
        """Record a stage of a chunk, and return all chunks that it is true of."""
        self.stages[stage].add(chunk)
        return ChunkInfo(tuple(sorted(self.stages[stage])), len(self.sds_ids))

    def has(self, chunk: int, stage: Stage) -> bool:
        """Return whether a stage is true of a chunk."""
        return chunk in self.stages[stage]

    @property
    def is_settled(self) -> bool:
        """Whether nothing more can happen: each chunk is acknowledged or failed."""
        done = self.stages[Stage.ACKNOWLEDGED] | self.stages[Stage.FAILED]
        return len(done) == len(self.sds_ids)


class Chunks:
    """All messages of ours about which something can still happen, oldest first."""

    __slots__ = ("_message_of", "_messages")

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
        """Return the message and the index of a chunk; None if it is not tracked."""
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
