"""Events that a node returns to its application."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from sds_core.mvds.payload import Message, Payload
from sds_core.mvds.records import RecordType


class _Event(msgspec.Struct, frozen=True, gc=False):
    """Base of the events.

    An event is cheap to create, and never equals an event of another type.
    """


class Delivered(_Event, frozen=True):
    """The node delivers a message of another node to the application.

    A message is delivered once, but an ephemeral message is delivered with each copy
    that arrives.

    Attributes:
        sender: The peer from which this copy arrived. The peer did not necessarily
            create the message, because nodes forward messages.
        missing_parents: Parents of the message that were not delivered before the
            message.
    """

    message_id: bytes
    message: Message
    sender: bytes
    missing_parents: tuple[bytes, ...] = ()


class Waiting(_Event, frozen=True):
    """A message arrived, but waits for its parents (`Resolution.CONSISTENT`)."""

    message_id: bytes
    missing_parents: tuple[bytes, ...]


class Duplicate(_Event, frozen=True):
    """A known message arrived again, and was acknowledged again."""

    message_id: bytes
    sender: bytes


class Acknowledged(_Event, frozen=True):
    """A peer's ACK, OFFER or MESSAGE shows that the peer holds a message.

    The node stops sending or offering the message to this peer.
    """

    message_id: bytes
    peer: bytes


class GaveUp(_Event, frozen=True):
    """A record will not be sent again.

    Either the record was sent `Options.max_sends` times without an answer, or its
    message was dropped, because the store is full.
    """

    message_id: bytes
    peer: bytes
    record: RecordType


class Forgotten(_Event, frozen=True):
    """A message was dropped, because the store is full.

    The node still knows the message's id, so it recognises further copies.
    """

    message_id: bytes


class RefusedReason(StrEnum):
    """Why a record or a whole payload of a peer is refused."""

    UNKNOWN_PEER = "unknown peer"
    FOREIGN_GROUP = "foreign group"
    TOO_LARGE = "too large"
    TOO_MANY_PARENTS = "too many parents"
    TOO_MANY_REQUESTS = "too many requests"
    TOO_MANY_ACKS = "too many acknowledgements"


class Refused(_Event, frozen=True):
    """A record or a whole payload of a peer was refused.

    For `TOO_MANY_REQUESTS` and `TOO_MANY_ACKS`, the node only omits a request or an
    acknowledgement, but processes the record otherwise. For the other reasons, the
    record or payload is not processed.

    A refused MESSAGE is still acknowledged, unless it is ephemeral, so its sender
    counts the message as delivered. If a MESSAGE was refused because its sender was not
    in the message's group, and the sender is added to this group later, the node
    requests the message.

    Attributes:
        message_id: Id of the message that the record concerns; empty if a whole payload
            was refused.
    """

    reason: RefusedReason
    sender: bytes
    message_id: bytes = b""


Event = Delivered | Waiting | Duplicate | Acknowledged | GaveUp | Forgotten | Refused


class Step(NamedTuple):
    """Result of one epoch: payloads for peers, and events for the application."""

    payloads: dict[bytes, Payload]
    events: list[Event]
