"""Events for a node's application."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from sds_core.mvds.payload import Message, Payload
from sds_core.mvds.records import RecordType


class _Event(msgspec.Struct, frozen=True, gc=False):
    """A value that is cheap to create and equals only values of its own type."""


class Delivered(_Event, frozen=True):
    """The application receives a message of another node.

    A message causes one event, but an ephemeral message causes one for each copy.

    Attributes:
        sender: The peer that sent this copy; it may have forwarded a message of another
            node.
        missing_parents: Parents of the message that were not delivered before it.
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

    Either the record was sent `Options.max_sends` times, or a full store dropped its
    message.
    """

    message_id: bytes
    peer: bytes
    record: RecordType


class Forgotten(_Event, frozen=True):
    """A full store dropped a message; copies are still recognised as known."""

    message_id: bytes


class RefusedReason(StrEnum):
    """Why a record of a peer is refused."""

    UNKNOWN_PEER = "unknown peer"
    FOREIGN_GROUP = "foreign group"
    TOO_LARGE = "too large"
    TOO_MANY_PARENTS = "too many parents"
    TOO_MANY_REQUESTS = "too many requests"
    TOO_MANY_ACKS = "too many acknowledgements"


class Refused(_Event, frozen=True):
    """A record of a peer was refused, so it has no effect.

    A refused MESSAGE is still acknowledged, so its sender counts it as delivered. If a
    MESSAGE was refused because the sender was not in its group, and the sender is added
    to the group later, the node requests the message.

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
