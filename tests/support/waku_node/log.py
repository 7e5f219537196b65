"""What a node's log holds: calls, and what became of each message."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sds_core.waku import WakuMessage


class Endpoint(StrEnum):
    """What can be asked for."""

    SUBSCRIBE_RELAY = "POST /relay/v1/subscriptions"
    RELAY = "GET /relay/v1/messages"
    PUBLISH = "POST /relay/v1/messages"
    SUBSCRIBE_FILTER = "POST /filter/v2/subscriptions"
    FILTER = "GET /filter/v2/messages"
    STORE = "GET /store/v3/messages"


class Cause(StrEnum):
    """Why a message left a cache without reaching anybody, or never came into one."""

    OVERFLOW = "overflow"
    RESTART = "restart"
    ANSWER = "answer"
    """It was taken for an answer that broke off, or that nobody waited for."""
    UNSUBSCRIBED = "unsubscribed"


@dataclass(frozen=True)
class Offer:
    """A message that the network brought to the node.

    Attributes:
        at_ns: When.
        hash: Its deterministic hash, 32 bytes.
        pubsub_topic, message: The message.
        arrived: Whether the node was up.
    """

    at_ns: int
    hash: bytes
    pubsub_topic: str
    message: WakuMessage
    arrived: bool


@dataclass(frozen=True)
class HandedOut:
    """A message that an answer held, sent whole to a client that was there.

    Attributes:
        at_ns: When it was taken out of a cache, or read from the store.
        endpoint: What was asked for.
        hash: Its hash.
    """

    at_ns: int
    endpoint: Endpoint
    hash: bytes


@dataclass(frozen=True)
class Dropped:
    """A message that a cache held, or should have, and that nobody was given.

    Attributes:
        at_ns: When.
        endpoint: Whose cache; None if no cache ever had it.
        hash: Its hash.
        cause: Why.
    """

    at_ns: int
    endpoint: Endpoint | None
    hash: bytes
    cause: Cause


@dataclass(frozen=True)
class Call:
    """A request and the status of its answer.

    Attributes:
        at_ns: When it had its effect: when a page was taken out of a cache, or a
            subscription was made.
        endpoint: What was asked for.
        status: HTTP status of the answer.
        arrived: Whether the client still waited for the answer.
    """

    at_ns: int
    endpoint: Endpoint
    status: int
    arrived: bool = True
