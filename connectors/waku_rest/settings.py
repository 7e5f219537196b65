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
    """The nodes relay the messages of the pubsub topics."""
    FILTER = "filter"
    """The nodes are light clients, which subscribe to content topics at their peers."""
    NONE = "none"
    """Only stores are read, so ephemeral messages, which include repairs, are not
    seen."""


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """Settings of one mirror.

    Attributes:
        topics: Content topics to mirror, by pubsub topic; an empty tuple selects all.
        store: Whether the mirror also reads the nodes' stores.
        cache_messages: Length of a node's cache (``--rest-relay-cache-capacity`` of the
            node; its filter cache is fixed at 50).
        poll_interval_s: Wait between two reads of a node's cache, seconds. If a read
            returns at least half of the cache's maximum, the mirror does not wait.
        store_interval_s: Time between two reads of a store's newest messages, seconds.
        backfill_s: How far back a new mirror reads from stores, seconds.
        spool_bytes: Size of the spool above which the mirror pauses reading.
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
