"""Events for a node's application. Every event is a plain value."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from sds_core.mvds.payload import Message, Payload
from sds_core.mvds.records import RecordType


class _Event(msgspec.Struct, frozen=True, gc=False):
    """A value that is cheap to create and equals only values of its own type."""


class Delivered(_Event, frozen=True):
    """A message of another node, for the application.

    A message causes one event; an ephemeral message causes one event for each copy.

    Attributes:
        sender: The peer that sent the message, which may not be the message's author.
        missing_parents: Parents that were not delivered before.
    """

    message_id: bytes
    message: Message
    sender: bytes
    missing_parents: tuple[bytes, ...] = ()


class Waiting(_Event, frozen=True):
    """A message arrived; it waits for its parents (consistent resolution)."""

    message_id: bytes
    missing_parents: tuple[bytes, ...]


class Duplicate(_Event, frozen=True):
    """A known message arrived and was acknowledged again."""

    message_id: bytes
    sender: bytes


class Acknowledged(_Event, frozen=True):
    """A peer's ACK, OFFER or MESSAGE shows that the peer holds our message."""

    message_id: bytes
    peer: bytes


class GaveUp(_Event, frozen=True):
    """A record is not sent again.

    The record was sent `max_sends` times, or a full store dropped the record's message.
    """

    message_id: bytes
    peer: bytes
    record: RecordType


class Forgotten(_Event, frozen=True):
    """A full store dropped a message; copies of it are still recognised."""

    message_id: bytes


class RefusedReason(StrEnum):
    """Why a record of a peer has no effect."""

    UNKNOWN_PEER = "unknown peer"
    FOREIGN_GROUP = "foreign group"
    TOO_LARGE = "too large"
    TOO_MANY_PARENTS = "too many parents"
    TOO_MANY_REQUESTS = "too many requests"
    TOO_MANY_ACKS = "too many acknowledgements"


class Refused(_Event, frozen=True):
    """A record of a peer is refused.

    A refused MESSAGE is acknowledged, so its sender counts it as delivered. A MESSAGE
    can be refused because its group is not shared with the sender. When the group is
    shared later, the node requests the message.

    Attributes:
        message_id: Message that the record concerns; empty for a whole payload.
    """

    reason: RefusedReason
    sender: bytes
    message_id: bytes = b""


Event = Delivered | Waiting | Duplicate | Acknowledged | GaveUp | Forgotten | Refused


class Step(NamedTuple):
    """Result of one epoch: payloads by peer, and events for the application."""

    payloads: dict[bytes, Payload]
    events: list[Event]
