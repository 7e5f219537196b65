"""Reads live messages from the relay cache or filter cache of one node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

from connectors.waku_rest.answers import Page
from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.errors import (
    BadAnswer,
    NodeError,
    NodeRefused,
    NodeUnreachable,
    NotSubscribed,
)
from connectors.waku_rest.intake import Intake, MirrorContext
from connectors.waku_rest.pacing import Trouble, persist
from connectors.waku_rest.settings import Listen
from sds_core.mirror.figures import Loss, Source

_RENEW_MS = 60_000
"""Time between two renewals of a filter subscription, ms.

A node drops a filter subscription that is not renewed for five minutes. Relay
subscriptions are not renewed: a restarted node lacks the subscription, and a renewal
would hide this sign of a restart.
"""

_LONGEST_S = 2.0
"""Maximum wait before a failed read of a node is repeated, s.

The wait is short, because a restarted node caches no messages until the mirror
subscribes again.
"""

_AFTER_CLEARING = frozenset({500, 502, 504})
"""HTTP statuses after which the page may be lost: the node may have deleted the page,
and a proxy may have lost the node's answer."""

_FILTER_CACHE = 50
"""Maximum number of messages in a node's filter cache; no option of the node changes
it."""


class Listener:
    """Polls the relay or filter cache of one node."""

    def __init__(
        self, node: NodeClient, context: MirrorContext, intake: Intake
    ) -> None:
        settings = context.settings
        self._node = node
        self._topics = settings.topics
        self._is_relay = settings.listen is Listen.RELAY
        self._source = Source.RELAY if self._is_relay else Source.FILTER
        self._cache = settings.cache_messages if self._is_relay else _FILTER_CACHE
        self._interval_s = settings.poll_interval_s
        self._intake = intake
        self._coverage = context.coverage
        self._figures = context.figures.nodes[node.url]
        self._ending = context.ending
        self._now_ms = context.now_ms
        self._subscribed_ms: int | None = None
        self._trouble = Trouble(context.now_ms)

    async def run(self) -> None:
        """Read until the mirror ends."""
        with suppress(NodeError):
            while not self._ending.is_set():
                count = 0
                if not self._intake.is_full:
                    count = await persist(
                        self._round, NodeError, self._ending, self._failed, _LONGEST_S
                    )
                if count < self._cache // 2:
                    await self._ending.pause(self._interval_s)

    async def _round(self) -> int:
        try:
            count = await self._read_subscribed()
        except NodeUnreachable as error:
            # The node may have restarted and lost its cache. `NotSubscribed` does not
            # show every restart, because a node may subscribe by its own configuration.
            away = not error.may_have_arrived
            await self._lost(Loss.UNREACHABLE if away else Loss.PAGE_CUT_OFF)
            raise
        except BadAnswer:
            await self._lost(Loss.PAGE_CUT_OFF)
            raise
        except NodeRefused as error:
            if error.status in _AFTER_CLEARING and error.request.startswith("GET"):
                await self._lost(Loss.PAGE_CUT_OFF)
            raise
        # All topics share one cache, so only the number of messages on all topics
        # together shows whether the cache was full.
        if count >= self._cache:
            self._figures.full_pages += 1
            await self._lost(Loss.FULL_PAGE)
        self._coverage.answered(self._node.url, self._now_ms())
        self._figures.is_up = True
        self._trouble.ends(f"node {self._node.url}: answers again")
        if not self._is_relay and self._is_old():
            await self._subscribe()
        return count

    async def _read_subscribed(self) -> int:
        if self._subscribed_ms is None:
            await self._subscribe()
        try:
            return await self._read()
        except NotSubscribed:
            # After the node lost the subscription, it cached no messages.
            self._subscribed_ms = None
            await self._lost(Loss.RESUBSCRIBED)
            await self._subscribe()
            return await self._read()

    async def _read(self) -> int:
        """Read the cache topic by topic; store each page before reading the next."""
        count = 0
        async for pubsub_topic, page in self._pages():
            count += len(page.messages) + page.undecodable.count
            self._figures.undecodable += page.undecodable.count
            self._figures.pages[self._source] += 1
            found = [(pubsub_topic, message) for message in page.messages]
            await self._intake.take(found, self._source)
            if page.broken_off:
                await self._lost(Loss.PAGE_CUT_OFF)
        return count

    def _is_old(self) -> bool:
        since_ms = self._subscribed_ms
        return since_ms is None or abs(self._now_ms() - since_ms) >= _RENEW_MS

    async def _subscribe(self) -> None:
        now_ms = self._now_ms()
        if self._is_relay:
            await self._node.subscribe_relay(list(self._topics))
        else:
            for pubsub_topic, content_topics in self._topics.items():
                await self._node.subscribe_filter(pubsub_topic, content_topics)
        self._subscribed_ms = now_ms

    async def _pages(self) -> AsyncIterator[tuple[str, Page]]:
        for pubsub_topic, content_topics in self._topics.items():
            if self._is_relay:
                yield pubsub_topic, await self._node.relay_messages(pubsub_topic)
            else:
                for topic in content_topics:
                    yield pubsub_topic, await self._node.filter_messages(topic)

    async def _lost(self, cause: Loss) -> None:
        await self._intake.probably_lost(self._node.url, cause)

    def _failed(self, error: BaseException) -> None:
        self._figures.failures[self._source] += 1
        self._trouble.begins(error)
        self._figures.is_up = False
