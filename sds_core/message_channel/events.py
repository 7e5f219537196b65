"""What a participant tells its application, and what it wants broadcast.

The words are those of SDS, "Events Emitted". Every event is a plain value; `Event` is
their union, so that a type checker sees a case left out.
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
    """One frame that the transport must send to everybody in the channel.

    Attributes:
        cause: content for a message's first sending, retry or repair for a later one.
        message_id: the id inside the frame.
        value: the bytes to send, byte-identical at every sending of one message.
    """

    cause: Cause
    message_id: str
    value: bytes


class _Event(msgspec.Struct, frozen=True, gc=False):
    """A value that equals only values of its own type, and is cheap to make."""


class Sent(_Event, frozen=True):
    """A message of ours was put into a frame."""

    message_id: str


class Retried(_Event, frozen=True):
    """An unacknowledged message of ours is broadcast again.

    Attributes:
        message_id: of ours.
        attempt: 1 for the first retry.
    """

    message_id: str
    attempt: int


class RetriesExhausted(_Event, frozen=True):
    """A message of ours is not broadcast again; it may still be acknowledged."""

    message_id: str


class PossiblyAcknowledged(_Event, frozen=True):
    """A participant's bloom filter holds a message of ours, for all that it tells.

    Attributes:
        message_id: of ours.
        sender_id: whose filter.
        participants: how many participants' filters count towards an acknowledgement;
            0 if this one is too full to, and no other has.
    """

    message_id: str
    sender_id: str
    participants: int


class Evidence(StrEnum):
    """What an acknowledgement rests on."""

    CAUSAL_HISTORY = "causal history"
    BLOOM_FILTER = "bloom filter"


class Acknowledged(_Event, frozen=True):
    """A message of ours was received by another participant: the last word on it.

    Attributes:
        message_id: of ours.
        sender_id: the participant whose frame decided it.
        evidence: a causal history that names it, or enough bloom filters.
    """

    message_id: str
    sender_id: str
    evidence: Evidence


class Received(_Event, frozen=True):
    """A content message arrived for the first time, delivered at once or waiting."""

    message_id: str
    sender_id: str


class Delivered(_Event, frozen=True):
    """A content message entered the local log, after everything it depends on.

    Attributes:
        message_id: of another participant, or of ours if it was forgotten.
        sender_id: who sent it first; empty if unknown.
        lamport: its place in the log is by (lamport, message_id).
        content: for the application.
    """

    message_id: str
    sender_id: str
    lamport: int
    content: bytes


class EphemeralReceived(_Event, frozen=True):
    """A message arrived that takes part in nothing: no log, no acknowledgement."""

    message_id: str
    sender_id: str
    content: bytes


class Missing(_Event, frozen=True):
    """A causal dependency that was never received; said once for each.

    Attributes:
        message_id: the id that is missing.
        retrieval_hint: helps to fetch it elsewhere; empty if unknown.
        sender_id: who sent it; empty if unknown, and then nobody can be asked.
        named_by: id of the message whose causal history names it.
    """

    message_id: str
    retrieval_hint: bytes
    sender_id: str
    named_by: str


class IrretrievablyLost(_Event, frozen=True):
    """A missing dependency that is waited for no longer; said once for each.

    Should it arrive all the same, it is delivered.
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
    """A frame of ours asks for missing messages (SDS-R).

    Attributes:
        message_ids: asked for.
        carrier_id: id of the message that carries the request.
    """

    message_ids: tuple[str, ...]
    carrier_id: str


class RepairRequestReceived(_Event, frozen=True):
    """Another participant asks for messages (SDS-R).

    Attributes:
        message_ids: those of them that we shall answer, unless another does first.
        sender_id: who asks.
    """

    message_ids: tuple[str, ...]
    sender_id: str


class RepairAnswered(_Event, frozen=True):
    """We broadcast a message that was asked for (SDS-R)."""

    message_id: str


class RepairExpired(_Event, frozen=True):
    """What we or another asked for was not answered within its window (SDS-R)."""

    message_id: str


class IgnoredReason(StrEnum):
    """Why a frame has no effect."""

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
    """A frame came in that has no effect, or none beyond cancelling repairs.

    Attributes:
        reason: to count by.
        message_id: of the frame; empty if malformed.
        detail: the values, for a log line.
    """

    reason: IgnoredReason
    message_id: str
    detail: str = ""


class BloomUnusable(_Event, frozen=True):
    """A frame's bloom filter says nothing; the rest of the frame counts.

    Attributes:
        message_id: of the frame.
        detail: what is wrong with it.
    """

    message_id: str
    detail: str


class Buffer(StrEnum):
    """The bounded memories of a participant."""

    OUTGOING = "outgoing"
    INCOMING = "incoming"
    MISSING = "missing"
    REPAIR_REQUESTS = "repair requests"
    REPAIR_RESPONSES = "repair responses"


class Evicted(_Event, frozen=True):
    """A buffer was full and gave up an entry, by the rule its profile states."""

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
    """What one call to a participant brought about, in order.

    Attributes:
        broadcasts: to hand to the transport.
        events: to hand to the application.
    """

    broadcasts: Sequence[Broadcast]
    events: Sequence[Event]
