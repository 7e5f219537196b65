"""Events for the application (RELIABLE-CHANNEL-API, "Event handling").

Most events are from the API's document. The document does not contain the last four
events of `EventName`.
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
    # The document does not contain the following events.
    RETRIES_EXHAUSTED = "retries-exhausted"
    RATE_LIMIT_REACHED = "rate-limit-reached"
    UNUSABLE_MESSAGE = "unusable-message"
    LIMIT_REACHED = "limit-reached"


class ChunkInfo(msgspec.Struct, frozen=True):
    """The chunks of a message that have reached the event's stage, for example *sent*.

    Attributes:
        chunks: Indices of these chunks, ascending; (0,) if the message has one chunk.
    """

    chunks: tuple[int, ...]
    total_chunks: int

    @property
    def is_complete(self) -> bool:
        """Whether all chunks have reached the stage."""
        return len(self.chunks) == self.total_chunks


class _Event(msgspec.Struct, frozen=True):
    """Base of events. An event equals only events of the same type."""


class _ChunkEvent(_Event, frozen=True):
    """An event about one of our messages."""

    message_id: str
    chunk_info: ChunkInfo


class SendingMessage(_ChunkEvent, frozen=True):
    """A chunk was passed to the network, for the first time or again."""

    name: ClassVar = EventName.SENDING_MESSAGE


class MessageSent(_ChunkEvent, frozen=True):
    """The network accepted a chunk, but no participant has acknowledged it yet."""

    name: ClassVar = EventName.MESSAGE_SENT


class MessagePossiblyAcknowledged(_ChunkEvent, frozen=True):
    """The filter of another participant seems to hold a chunk."""

    name: ClassVar = EventName.MESSAGE_POSSIBLY_ACKNOWLEDGED


class MessageAcknowledged(_ChunkEvent, frozen=True):
    """Another participant has received a chunk."""

    name: ClassVar = EventName.MESSAGE_ACKNOWLEDGED


class SendError(StrEnum):
    """Why a message is not sent. The document defines the first four reasons."""

    ENCODING_FAILED = "encoding failed"
    EMPTY_PAYLOAD = "empty payload"
    SIZE_TOO_LARGE = "size too large"
    RLN_PROOF_FAILED = "RLN proof generation failed"
    SENDING_FAILED = "sending failed"
    QUEUE_FULL = "queue full"


class SendingMessageIrrecoverableError(_ChunkEvent, frozen=True):
    """A chunk cannot be sent, now or later. `detail` is a text for a log line."""

    error: SendError
    detail: str = ""

    name: ClassVar = EventName.SENDING_MESSAGE_IRRECOVERABLE_ERROR


class MessageReceived(_Event, frozen=True):
    """A complete message of another participant arrived, after all its dependencies."""

    payload: bytes
    sender_id: str
    is_ephemeral: bool = False

    name: ClassVar = EventName.MESSAGE_RECEIVED


class Irretrievable(StrEnum):
    """What could not be fetched: a message, or a part of its chunks."""

    MESSAGE = "message"
    CHUNKS = "chunks"


class IrretrievableMessage(_Event, frozen=True):
    """A message, or some of its chunks, did not arrive in time.

    Attributes:
        entry: The message. If chunks are missing, the entry's id is the hash of the
            whole payload in hexadecimal, and the entry has no hint.
    """

    entry: HistoryEntry
    what: Irretrievable = Irretrievable.MESSAGE

    name: ClassVar = EventName.IRRETRIEVABLE_MESSAGE


class DropReason(StrEnum):
    """Why an ephemeral message was dropped. The texts are from the document."""

    RATE_LIMIT_APPROACHED = "rate_limit_approached"
    RATE_LIMIT_REACHED = "rate_limit_reached"


class EphemeralMessageDropped(_Event, frozen=True):
    """An ephemeral message was neither sent nor queued."""

    message_id: str
    reason: DropReason

    name: ClassVar = EventName.EPHEMERAL_MESSAGE_DROPPED


class RetriesExhausted(_ChunkEvent, frozen=True):
    """A chunk is not sent again, but may still be acknowledged."""

    name: ClassVar = EventName.RETRIES_EXHAUSTED


class RateLimitReached(_Event, frozen=True):
    """The rate limit is reached or approached, so messages begin to wait."""

    queued: int

    name: ClassVar = EventName.RATE_LIMIT_REACHED


class Unusable(StrEnum):
    """Why a message from the network has no effect."""

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
        limit: The option that sets the limit.
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
"""Names of events in LIP-173, the later version of the API.

LIP-173 has no other events.
"""
