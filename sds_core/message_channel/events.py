"""What a participant's methods return: events for the application, and frames to send.

The names of events follow SDS, "Events Emitted". `Event` is the union of all event
types, so a type checker finds types that an application does not handle.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec


class Cause(StrEnum):
    """Why a frame is broadcast."""

    CONTENT = "content"
    RETRY = "retry"
    REPAIR = "repair"
    SYNC = "sync"
    EPHEMERAL = "ephemeral"


class Broadcast(NamedTuple):
    """One frame that the transport must send to all other participants of the channel.

    Attributes:
        cause: for example, `CONTENT` for a message's first broadcast, and `RETRY` or
            `REPAIR` for its later broadcasts.
        value: the bytes to send; they are the same in all broadcasts of a message.
    """

    cause: Cause
    message_id: str
    value: bytes


class _Event(msgspec.Struct, frozen=True, gc=False):
    """Base of all events; an event equals only events of its own type."""


class Sent(_Event, frozen=True):
    """A message of ours was put into a frame.

    Attributes:
        lamport: Lamport timestamp of the message; None for an ephemeral message. In a
            log with `LogOrder.LAMPORT`, the timestamp decides the message's position.
    """

    message_id: str
    lamport: int | None


class Retried(_Event, frozen=True):
    """A message of ours is broadcast again; `attempt` is 1 for the first repetition."""

    message_id: str
    attempt: int


class RetriesExhausted(_Event, frozen=True):
    """A message of ours was retried `Profile.max_retries` times.

    The message is not retried any more, but may still be acknowledged.
    """

    message_id: str


class PossiblyAcknowledged(_Event, frozen=True):
    """Another participant's bloom filter seems to hold a message of ours.

    Attributes:
        participants: number of participants whose filters seem to hold the message and
            count towards its acknowledgement. A filter that is too full does not count.
    """

    message_id: str
    sender_id: str
    participants: int


class Evidence(StrEnum):
    """Kind of evidence for an acknowledgement."""

    CAUSAL_HISTORY = "causal history"
    BLOOM_FILTER = "bloom filter"


class Acknowledged(_Event, frozen=True):
    """Another participant received our message, so we do not retry it any more."""

    message_id: str
    sender_id: str
    evidence: Evidence


class Received(_Event, frozen=True):
    """A content message arrived for the first time; it may wait for dependencies."""

    message_id: str
    sender_id: str


class Delivered(_Event, frozen=True):
    """A content message entered the local log; it does not wait for dependencies.

    Attributes:
        message_id: id of the message. Usually, another participant wrote the message.
            It can be a message of ours only after a restore from an older snapshot.
        sender_id: participant that wrote the message; empty if unknown.
        lamport: Lamport timestamp of the message. In a log with `LogOrder.LAMPORT`, the
            timestamp decides the message's position.
    """

    message_id: str
    sender_id: str
    lamport: int
    content: bytes


class EphemeralReceived(_Event, frozen=True):
    """An ephemeral message arrived; it enters no log and is not acknowledged."""

    message_id: str
    sender_id: str
    content: bytes


class Missing(_Event, frozen=True):
    """A received causal history names a message that has not arrived.

    Each missing message causes one event. If the hint or sender of the missing message
    becomes known later, `MessageChannel.missing` shows the new value.

    Attributes:
        sender_id: participant that sent the missing message. If the sender is unknown,
            `sender_id` is empty and no repair is possible.
        named_by: id of the received message whose causal history names the missing
            message.
    """

    message_id: str
    retrieval_hint: bytes
    sender_id: str
    named_by: str


class IrretrievablyLost(_Event, frozen=True):
    """The participant stopped waiting for a missing message.

    Each lost message causes one event. If the message arrives after this event, it is
    still delivered.
    """

    message_id: str
    retrieval_hint: bytes
    sender_id: str


class SyncSent(_Event, frozen=True):
    """A sync message was put into a frame."""

    message_id: str


class SyncReceived(_Event, frozen=True):
    """A sync message arrived."""

    message_id: str
    sender_id: str


class RepairRequested(_Event, frozen=True):
    """A frame of ours requests missing messages (SDS-R).

    Attributes:
        carrier_id: id of the message whose frame carries the request.
    """

    message_ids: tuple[str, ...]
    carrier_id: str


class RepairRequestReceived(_Event, frozen=True):
    """A frame of another participant requests missing messages (SDS-R).

    Attributes:
        message_ids: ids of the requested messages that we will send, unless another
            participant sends them first.
    """

    message_ids: tuple[str, ...]
    sender_id: str


class RepairAnswered(_Event, frozen=True):
    """We broadcast a message that another participant requested (SDS-R)."""

    message_id: str


class RepairExpired(_Event, frozen=True):
    """No participant answered our repair request in time (SDS-R)."""

    message_id: str


class IgnoredReason(StrEnum):
    """Why a received frame is ignored."""

    OWN_ECHO = "own echo"
    DUPLICATE = "duplicate"
    FOREIGN_CHANNEL = "foreign channel"
    FOREIGN_DIALECT = "foreign dialect"
    MALFORMED = "malformed"
    TOO_LARGE = "too large"
    HISTORY_TOO_LONG = "history too long"
    ID_TOO_LONG = "id too long"
    OLDER_THAN_LOG = "older than the log"
    FAR_FUTURE = "too far in the future"


class Ignored(_Event, frozen=True):
    """A received frame is ignored.

    If we planned to send the frame's message as an answer to a repair request, the
    ignored frame may still cancel our answer.

    With the reason `OLDER_THAN_LOG`, the message is not delivered, because the
    participant may have delivered it before. The frame has all its other effects.

    Attributes:
        message_id: message id in the frame; empty if the frame was not decoded.
        detail: text for a log line, with the values that explain the reason.
    """

    reason: IgnoredReason
    message_id: str
    detail: str = ""


class BloomUnusable(_Event, frozen=True):
    """A frame's bloom filter is unusable; the other fields of the frame are used."""

    message_id: str
    detail: str


class Buffer(StrEnum):
    """A participant's buffers that have a limit."""

    OUTGOING = "outgoing"
    INCOMING = "incoming"
    MISSING = "missing"
    REPAIR_REQUESTS = "repair requests"
    REPAIR_RESPONSES = "repair responses"


class Evicted(_Event, frozen=True):
    """A full buffer dropped an entry; `Profile` defines which entry."""

    buffer: Buffer
    message_id: str


Event = (
    Sent
    | Retried
    | RetriesExhausted
    | PossiblyAcknowledged
    | Acknowledged
    | Received
    | Delivered
    | EphemeralReceived
    | Missing
    | IrretrievablyLost
    | SyncSent
    | SyncReceived
    | RepairRequested
    | RepairRequestReceived
    | RepairAnswered
    | RepairExpired
    | Ignored
    | BloomUnusable
    | Evicted
)


class Step(NamedTuple):
    """The result of one call: frames and events, each in the order of occurrence."""

    broadcasts: Sequence[Broadcast]
    events: Sequence[Event]
