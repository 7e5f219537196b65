"""A client of a conformance node, for one request at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from connectors.waku_rest.answers import Page, StorePage
from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.connection import NodeSettings, open_client
from connectors.waku_rest.store_query import StoreQuery
from sds_core.waku import WakuMessage
from tests.support.waku_node import ConformanceNode

SHARD = "/waku/2/rs/1/3"
TOPIC = "/app/1/a b%2F+ü/proto"

T = TypeVar("T")


def ask(
    node: ConformanceNode,
    work: Callable[[NodeClient], Awaitable[T]],
    **settings: object,
) -> T:
    """Do something with a client of a node."""

    async def run() -> T:
        made = NodeSettings(**{"url": node.url} | settings)
        async with open_client(made) as http:
            return await work(NodeClient(node.url, http))

    return asyncio.run(run())


def subscribe(node: ConformanceNode) -> None:
    """Have the node cache what is relayed on the shard."""
    ask(node, lambda client: client.subscribe_relay([SHARD]))


def take(node: ConformanceNode, **settings: object) -> Page:
    """Read the shard's page."""
    return ask(node, lambda client: client.relay_messages(SHARD), **settings)


def look(
    node: ConformanceNode, cursor: bytes | None = None, **query: object
) -> StorePage:
    """Read a page of the store."""
    asked = StoreQuery(**query)
    return ask(node, lambda client: client.store_page(asked, cursor))


def message(number: int, topic: str = TOPIC) -> WakuMessage:
    """A message of just now, the later the higher its number."""
    payload = f"\0\xff {number}".encode("latin-1")
    return WakuMessage(payload, topic, time.time_ns() + number)


def offer(node: ConformanceNode, count: int) -> list[WakuMessage]:
    """Offer messages to the node and return them."""
    offered = [message(number) for number in range(count)]
    for one in offered:
        node.offer(one, pubsub_topic=SHARD)
    return offered
