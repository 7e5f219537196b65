"""Settings of a mirror."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # An import at run time would load httpx, which the help text of `mirror` does not
    # need.
    from connectors.waku_rest.connection import NodeSettings


class Listen(enum.StrEnum):
    """Source of live messages."""

    RELAY = "relay"
    """The nodes relay all messages on the pubsub topics."""
    FILTER = "filter"
    """The nodes are light clients, which subscribe to content topics at their peers."""
    NONE = "none"
    """The mirror reads only stores, so it receives no ephemeral messages. Repairs are
    ephemeral, too."""


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """Settings of one mirror.

    Attributes:
        topics: Pubsub topic -> content topics to mirror; an empty tuple selects all
            content topics.
        store: Whether the mirror also reads the nodes' stores.
        cache_messages: Maximum number of messages in a node's relay cache, as in the
            node's option ``--rest-relay-cache-capacity``. (The maximum of a filter
            cache is always 50.)
        poll_interval_s: Wait between two reads of a node's cache, seconds. If a read
            returns at least half as many messages as the cache can hold, the mirror
            reads again without a wait.
        store_interval_s: Time between two reads of a store's newest messages, seconds.
        backfill_s: How far back a new mirror reads from stores, seconds.
        spool_bytes: Size limit of the spool, bytes. Above this size, the mirror pauses
            reading from nodes.
    """

    nodes: tuple[NodeSettings, ...]
    topics: dict[str, tuple[str, ...]]
    listen: Listen = Listen.RELAY
    store: bool = True
    cache_messages: int = 50
    poll_interval_s: float = 0.5
    store_interval_s: float = 10.0
    backfill_s: float = 0.0
    spool_bytes: int = 1024**3
