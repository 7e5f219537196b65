"""A Waku node for reliable channels, reached through its REST API.

The API cannot push messages, so the relay's cache is polled. The node creates RLN
proofs.
"""

from __future__ import annotations

import asyncio

from connectors.event_loop.driver import unix_ms
from connectors.reliable_channel.node import (
    Listener,
    QueryFailed,
    SendFailed,
    StoredPage,
    Unsubscribe,
)
from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.errors import NodeError, NodeRefused, NotSubscribed
from connectors.waku_rest.pacing import Trouble
from connectors.waku_rest.store_query import StoreQuery
from sds_core.reliable_channel import Arrived, SendError, StoreRequest
from sds_core.waku import WakuMessage, autosharded_topic

_NS_PER_MS = 1_000_000

_IRRECOVERABLE = (
    # logos-delivery, rest_api/endpoint/relay/handlers.nim and waku_relay.
    ("appending RLN proof", SendError.RLN_PROOF_FAILED),
    ("Message size exceeded", SendError.SIZE_TOO_LARGE),
)
"""Texts that only permanent refusals contain, and the error to report for each text.
Other refusals may be temporary, for example if the RLN rate limit is exhausted, or the
node has no peers."""

_TOO_LARGE = 413


class RestNode:
    """One node for any number of channels on autosharded topics.

    Each read empties the relay's cache. Therefore use one `RestNode` for all channels
    on a Waku node, and do not share a Waku node between processes. `relay` and `store`
    may be the same node. If `store` is None, queries fail. The defaults, cluster 1 with
    8 shards, are those of The Waku Network. The relay's cache is read every `poll_s`
    seconds.
    """

    def __init__(
        self,
        relay: NodeClient,
        store: NodeClient | None,
        *,
        cluster: int = 1,
        shards: int = 8,
        poll_s: float = 1.0,
    ) -> None:
        self._relay = relay
        self._store = store
        self._cluster = cluster
        self._shards = shards
        self._poll_s = poll_s
        self._listeners: dict[str, dict[str, list[Listener]]] = {}
        self._pollers: dict[str, asyncio.Task[None]] = {}

    def pubsub_topic(self, content_topic: str) -> str:
        """Return the pubsub topic of the content topic's shard.

        Raises:
            BadContentTopic: The content topic has an invalid form.
        """
        return autosharded_topic(content_topic, self._cluster, self._shards)

    async def subscribe(self, content_topic: str, listener: Listener) -> Unsubscribe:
        """Report messages of a content topic to a listener.

        The listener also learns whether the node answers.
        """
        topic = self.pubsub_topic(content_topic)
        on_topic = self._listeners.setdefault(topic, {})
        on_topic.setdefault(content_topic, []).append(listener)
        if topic not in self._pollers:
            self._pollers[topic] = asyncio.create_task(self._poll(topic))

        def unsubscribe() -> None:
            on_topic[content_topic].remove(listener)
            if not any(on_topic.values()):
                del self._listeners[topic]
                # `close` may have removed the poller already.
                if poller := self._pollers.pop(topic, None):
                    poller.cancel()

        return unsubscribe

    async def close(self) -> None:
        """End all polling."""
        pollers = list(self._pollers.values())
        for poller in pollers:
            poller.cancel()
        await asyncio.gather(*pollers, return_exceptions=True)
        self._pollers.clear()

    async def send(self, message: WakuMessage) -> None:
        """Let the node relay a message.

        Raises:
            SendFailed: The node refused the message, or did not confirm that it relayed
                the message.
        """
        topic = self.pubsub_topic(message.content_topic)
        try:
            await self._relay.publish(topic, message)
        except NodeRefused as error:
            raise SendFailed(str(error), _irrecoverable(error)) from error
        except NodeError as error:
            raise SendFailed(str(error)) from error

    async def query(self, content_topic: str, request: StoreRequest) -> StoredPage:
        """Request one page of messages from the store.

        Raises:
            QueryFailed: The store returned no page, or no store is configured.
        """
        if self._store is None:
            raise QueryFailed("no store is configured")
        if request.hashes:
            query = StoreQuery(hashes=request.hashes)
        else:
            query = StoreQuery(
                pubsub_topic=self.pubsub_topic(content_topic),
                content_topics=(content_topic,),
                start_ns=request.start_ms * _NS_PER_MS,
                end_ns=request.end_ms * _NS_PER_MS,
                page_size=request.page_size,
                ascending=False,
            )
        try:
            page = await self._store.store_page(query, request.cursor)
        except NodeError as error:
            raise QueryFailed(str(error)) from error
        messages = [
            Arrived(one.message, one.hash)
            for one in page.messages
            if one.message is not None
        ]
        return StoredPage(messages, page.cursor)

    async def _poll(self, topic: str) -> None:
        trouble = Trouble(unix_ms)
        is_subscribed = False
        while True:
            try:
                if not is_subscribed:
                    await self._relay.subscribe_relay([topic])
                    is_subscribed = True
                page = await self._relay.relay_messages(topic)
            except NodeError as error:
                # A restarted node has no subscriptions: subscribe again.
                is_subscribed = is_subscribed and not isinstance(error, NotSubscribed)
                trouble.begins(error)
                self._connected(topic, is_online=False)
            else:
                trouble.ends(f"node {self._relay.url}: its relay answers again")
                self._connected(topic, is_online=True)
                for message in page.messages:
                    self._deliver(topic, message)
            await asyncio.sleep(self._poll_s)

    def _connected(self, topic: str, *, is_online: bool) -> None:
        has_store = is_online and self._store is not None
        for listeners in tuple(self._listeners.get(topic, {}).values()):
            for listener in tuple(listeners):
                listener.connection_changed(is_online=is_online, has_store=has_store)

    def _deliver(self, topic: str, message: WakuMessage) -> None:
        on_topic = self._listeners.get(topic, {})
        message_hash = message.hash_on(topic)
        for listener in tuple(on_topic.get(message.content_topic, ())):
            listener.arrived(message, message_hash)


def _irrecoverable(error: NodeRefused) -> SendError | None:
    if error.status == _TOO_LARGE:
        return SendError.SIZE_TOO_LARGE
    for text, kind in _IRRECOVERABLE:
        if text in error.detail:
            return kind
    return None
