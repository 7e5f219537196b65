"""After a synchronisation, the store is asked for what was sent since."""

from __future__ import annotations

import asyncio

import pytest

from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.connection import NodeSettings, open_client
from connectors.waku_rest.store_query import onward_query
from sds_core.prolly.item import Item
from sds_core.prolly.tree import ProllyTree
from sds_core.waku import WakuMessage
from tests.support.waku_node import ConformanceNode

TOPIC = "/waku/2/rs/1/0"
NOW_NS = 1_790_000_000_000_000_000


@pytest.mark.rule("sync-onward")
def test_only_messages_from_the_last_one_on_are_asked_for() -> None:
    """Also one with the same time; of an empty tree, all."""
    messages = [
        WakuMessage(str(number).encode(), "/a/1/b/c", NOW_NS + step)
        for number, step in enumerate((0, 10, 20, 20, 30))
    ]
    items = [Item(one.timestamp_ns, one.hash_on(TOPIC)) for one in messages]

    async def asked(tree: ProllyTree, url: str) -> set[bytes]:
        async with open_client(NodeSettings(url)) as http:
            page = await NodeClient(url, http).store_page(
                onward_query(tree, TOPIC), include_data=False
            )
            return {one.hash for one in page.messages}

    with ConformanceNode() as node:
        for one in messages:
            node.store_late(one, pubsub_topic=TOPIC)
        url = node.url
        found = asyncio.run(asked(ProllyTree(items[:3]), url))
        assert found == {one.message_hash for one in items[2:]}
        found = asyncio.run(asked(ProllyTree(), url))
        assert found == {one.message_hash for one in items}
