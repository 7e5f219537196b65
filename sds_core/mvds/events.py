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

    A message that is not ephemeral is delivered once. An ephemeral message is delivered
    each time that a copy arrives.

    Attributes:
        sender: The peer that sent the delivered copy. This peer did not necessarily
            create the message, because nodes forward messages.
        missing_parents: Parents that had not been delivered when the message was
            delivered.
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

    The record was sent `Options.max_sends` times without an answer, or its message was
    dropped because the store was full, or the message is longer than a payload since
    the node was restored with other options.
    """

    message_id: bytes
    peer: bytes
    record: RecordType


class Forgotten(_Event, frozen=True):
    """A message was dropped because the store was full.

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

    If the reason is `TOO_MANY_REQUESTS` or `TOO_MANY_ACKS`, the node processes the
    record, but omits the request or the acknowledgement of a message. If the reason is
    another one, the record or payload is not processed.

    Unless a refused MESSAGE is ephemeral, the node still acknowledges it. The sender
    then counts the message as delivered. If the MESSAGE was refused because its sender
    was not in the message's group, the node requests the message when the sender is
    added to this group.

    Attributes:
        message_id: Id of the message that was refused, or that was not requested or not
            acknowledged; empty if a whole payload was refused.
    """

    reason: RefusedReason
    sender: bytes
    message_id: bytes = b""


Event = Delivered | Waiting | Duplicate | Acknowledged | GaveUp | Forgotten | Refused


class Step(NamedTuple):
    """Result of one epoch: payloads for peers, and events for the application."""

    payloads: dict[bytes, Payload]
    events: list[Event]
