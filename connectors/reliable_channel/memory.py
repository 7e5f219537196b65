"""A Waku node in memory, for a first program or for tests of an application."""

from __future__ import annotations

import asyncio

from connectors.reliable_channel.node import Listener, StoredPage, Unsubscribe
from sds_core.reliable_channel import Arrived, StoreRequest
from sds_core.simulation.reliable_network import SimulatedStore
from sds_core.waku import WakuMessage, autosharded_topic

_CLUSTER, _SHARDS = 1, 8
"""Cluster id and number of shards of the Waku Network."""


class MemoryNode:
    """A node that relays messages to its channels, and stores them unless ephemeral.

    When the node object is deleted, the stored messages are lost. All channels of a
    node must use the same event loop.
    """

    def __init__(self) -> None:
        self._listeners: dict[str, list[Listener]] = {}
        self._store = SimulatedStore()

    def pubsub_topic(self, content_topic: str) -> str:
        """Return the pubsub topic of the content topic's shard.

        Raises:
            BadContentTopic: The content topic has an invalid form.
        """
        return autosharded_topic(content_topic, _CLUSTER, _SHARDS)

    async def subscribe(self, content_topic: str, listener: Listener) -> Unsubscribe:
        """Register a listener for a content topic. Report that the node is online."""
        listeners = self._listeners.setdefault(content_topic, [])
        listeners.append(listener)
        listener.connection_changed(is_online=True, has_store=True)
        return lambda: listeners.remove(listener)

    async def send(self, message: WakuMessage) -> None:
        """Store a message unless it is ephemeral, and relay it after this call."""
        arrived = Arrived(
            message, message.hash_on(self.pubsub_topic(message.content_topic))
        )
        self._store.put(message, arrived.message_hash)
        asyncio.get_running_loop().call_soon(self._relay, arrived)

    async def query(self, content_topic: str, request: StoreRequest) -> StoredPage:
        """Query the store for one page."""
        page = self._store.page(request, content_topic)
        return StoredPage(page.messages, page.cursor)

    def _relay(self, arrived: Arrived) -> None:
        for listener in tuple(self._listeners.get(arrived.message.content_topic, ())):
            listener.arrived(arrived.message, arrived.message_hash)
