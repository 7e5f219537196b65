"""What a mirror is told to do."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # At run time it would import httpx, which the help text of `mirror` does not need.
    from connectors.waku_rest.connection import NodeSettings


class Listen(enum.StrEnum):
    """How nodes are listened to while messages pass."""

    RELAY = "relay"
    """Nodes relay the pubsub topics themselves."""
    FILTER = "filter"
    """Nodes are light clients, and ask their peers for the content topics."""
    NONE = "none"
    """Only their stores are read: no ephemeral message, and so no repair, is seen."""


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """One mirror.

    Attributes:
        nodes: Where the REST APIs are.
        topics: Content topics by pubsub topic; none of a pubsub topic stands for all.
        listen: How nodes are listened to.
        store: Whether their stores are read as well.
        cache_messages: Length of a node's cache (``--rest-relay-cache-capacity`` of
            the node; its filter cache is fixed at 50).
        poll_interval_s: From one page to the next, seconds; a cache that fills is
            asked again at once.
        store_interval_s: From one reading of the latest of a store to the next.
        backfill_s: How much of the past a new mirror reads from stores, seconds.
        spool_bytes: While more than this waits for Kafka, nothing is read.
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
