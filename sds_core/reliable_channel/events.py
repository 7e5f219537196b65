"""Events for the application (RELIABLE-CHANNEL-API, "Event handling").

RELIABLE-CHANNEL-API defines all events except the last four of `EventName`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

import msgspec

from sds_core.wire import HistoryEntry


class EventName(StrEnum):
    """Names under which an application listens for events."""

    SENDING_MESSAGE = "sending-message"
    MESSAGE_SENT = "message-sent"
    MESSAGE_POSSIBLY_ACKNOWLEDGED = "message-possibly-acknowledged"
    MESSAGE_ACKNOWLEDGED = "message-acknowledged"
    SENDING_MESSAGE_IRRECOVERABLE_ERROR = "sending-message-irrecoverable-error"
    MESSAGE_RECEIVED = "message-received"
    IRRETRIEVABLE_MESSAGE = "irretrievable-message"
    EPHEMERAL_MESSAGE_DROPPED = "ephemeral-message-dropped"
    # RELIABLE-CHANNEL-API does not define the following events.
    RETRIES_EXHAUSTED = "retries-exhausted"
    RATE_LIMIT_REACHED = "rate-limit-reached"
    UNUSABLE_MESSAGE = "unusable-message"
    LIMIT_REACHED = "limit-reached"


class ChunkInfo(msgspec.Struct, frozen=True):
    """Which chunks of a message have reached a stage, for example *sent*.

    The event that contains this object determines the stage.

    Attributes:
        chunks: Indices of the chunks that have reached the stage, ascending; (0,) if
            the message has one chunk.
    """

    chunks: tuple[int, ...]
    total_chunks: int

    @property
    def is_complete(self) -> bool:
        """Whether all chunks of the message have reached the stage."""
        return len(self.chunks) == self.total_chunks


class _Event(msgspec.Struct, frozen=True):
    """Base class of events. Events of different types are never equal."""


class _ChunkEvent(_Event, frozen=True):
    """An event about chunks of a message that this participant sends."""

    message_id: str
    chunk_info: ChunkInfo


class SendingMessage(_ChunkEvent, frozen=True):
    """A chunk was passed to the network, for the first time or again."""

    name: ClassVar = EventName.SENDING_MESSAGE


class MessageSent(_ChunkEvent, frozen=True):
    """The network accepted a chunk. It is unknown whether a participant receives it."""

    name: ClassVar = EventName.MESSAGE_SENT


class MessagePossiblyAcknowledged(_ChunkEvent, frozen=True):
    """Another participant's Bloom filter seems to contain the id of a chunk."""

    name: ClassVar = EventName.MESSAGE_POSSIBLY_ACKNOWLEDGED


class MessageAcknowledged(_ChunkEvent, frozen=True):
    """Another participant has received a chunk."""

    name: ClassVar = EventName.MESSAGE_ACKNOWLEDGED


class SendError(StrEnum):
    """Why a message is not sent. RELIABLE-CHANNEL-API defines the first four values."""

    ENCODING_FAILED = "encoding failed"
    EMPTY_PAYLOAD = "empty payload"
    SIZE_TOO_LARGE = "size too large"
    RLN_PROOF_FAILED = "RLN proof generation failed"
    SENDING_FAILED = "sending failed"
    QUEUE_FULL = "queue full"


class SendingMessageIrrecoverableError(_ChunkEvent, frozen=True):
    """A chunk cannot be sent and is not retried. `detail` is a text for a log line."""

    error: SendError
    detail: str = ""

    name: ClassVar = EventName.SENDING_MESSAGE_IRRECOVERABLE_ERROR


class MessageReceived(_Event, frozen=True):
    """A complete message of another participant arrived.

    The messages on which it depends arrived earlier, count as lost, or are no longer
    awaited because the buffer of waiting messages was full.
    """

    payload: bytes
    sender_id: str
    is_ephemeral: bool = False

    name: ClassVar = EventName.MESSAGE_RECEIVED


class Irretrievable(StrEnum):
    """What could not be fetched: a whole message, or some chunks of a message."""

    MESSAGE = "message"
    CHUNKS = "chunks"


class IrretrievableMessage(_Event, frozen=True):
    """A message, or some of its chunks, did not arrive in time.

    Attributes:
        entry: Identifies the message. If only chunks are missing, the entry's id is the
            hash of the whole payload in hexadecimal, and the entry has no retrieval
            hint.
    """

    entry: HistoryEntry
    what: Irretrievable = Irretrievable.MESSAGE

    name: ClassVar = EventName.IRRETRIEVABLE_MESSAGE


class DropReason(StrEnum):
    """Why an ephemeral message was dropped, in the words of RELIABLE-CHANNEL-API."""

    RATE_LIMIT_APPROACHED = "rate_limit_approached"
    RATE_LIMIT_REACHED = "rate_limit_reached"


class EphemeralMessageDropped(_Event, frozen=True):
    """An ephemeral message was dropped because of the rate limit."""

    message_id: str
    reason: DropReason

    name: ClassVar = EventName.EPHEMERAL_MESSAGE_DROPPED


class RetriesExhausted(_ChunkEvent, frozen=True):
    """The channel no longer resends a chunk. The chunk may still be acknowledged."""

    name: ClassVar = EventName.RETRIES_EXHAUSTED


class RateLimitReached(_Event, frozen=True):
    """Messages begin to wait, because the rate limit is reached or nearly reached."""

    queued: int

    name: ClassVar = EventName.RATE_LIMIT_REACHED


class Unusable(StrEnum):
    """Why a message from the network is unusable."""

    UNDECRYPTABLE = "undecryptable"
    BAD_FRAME = "bad frame"
    BAD_SEGMENT = "bad segment"


class UnusableMessage(_Event, frozen=True):
    """A message on the content topic is unusable. `detail` is a text for a log line."""

    why: Unusable
    detail: str

    name: ClassVar = EventName.UNUSABLE_MESSAGE


class LimitReached(_Event, frozen=True):
    """A buffer was full and dropped its oldest entry.

    Attributes:
        limit: Name of the option in `Limits` that limits the buffer.
        message_id: Id of the dropped entry; empty if it has no id.
    """

    limit: str
    message_id: str = ""

    name: ClassVar = EventName.LIMIT_REACHED


Event = (
    SendingMessage
    | MessageSent
    | MessagePossiblyAcknowledged
    | MessageAcknowledged
    | SendingMessageIrrecoverableError
    | MessageReceived
    | IrretrievableMessage
    | EphemeralMessageDropped
    | RetriesExhausted
    | RateLimitReached
    | UnusableMessage
    | LimitReached
)

LIP_173_NAMES = {
    EventName.MESSAGE_RECEIVED: "received",
    EventName.MESSAGE_SENT: "sent",
    EventName.MESSAGE_ACKNOWLEDGED: "delivered",
    EventName.SENDING_MESSAGE_IRRECOVERABLE_ERROR: "send-error",
    EventName.RETRIES_EXHAUSTED: "delivery-error",
}
"""The names of events in LIP-173, a later version of RELIABLE-CHANNEL-API.

LIP-173 does not define the other events of `EventName`.
"""
