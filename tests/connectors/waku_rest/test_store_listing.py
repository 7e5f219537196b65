"""Pages of a store that never end."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence

import pytest

from connectors.waku_rest import store_query
from connectors.waku_rest.answers import StoredMessage, StorePage, Undecodables
from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.connection import NodeSettings
from connectors.waku_rest.errors import BadAnswer, TooManyPages
from connectors.waku_rest.store_listing import StoreListing
from tests.support.waku_node import ConformanceNode
from tests.support.waku_rest.asking import SHARD, ask, offer

_SPAN = (1, 2**62)


def _hash(number: int) -> bytes:
    return number.to_bytes(32, "big")


def _listed(
    monkeypatch: pytest.MonkeyPatch, hashes_of: Callable[[int], Sequence[int]]
) -> None:
    """List a store whose pages have ever new cursors."""
    pages = itertools.count(1)

    async def page(*_: object, **__: object) -> StorePage:
        # Without this, the time limit below would have no effect.
        await asyncio.sleep(0)
        number = next(pages)
        stored = [StoredMessage(_hash(one), SHARD, None) for one in hashes_of(number)]
        return StorePage(stored, _hash(number), Undecodables())

    monkeypatch.setattr(NodeClient, "store_page", page)
    listing = StoreListing(NodeSettings("http://h"), {SHARD: ()})
    asyncio.run(asyncio.wait_for(listing.hashes(*_SPAN), 5))


@pytest.mark.parametrize("hashes", [[], [7]])
def test_page_without_a_new_message_must_be_the_last(
    monkeypatch: pytest.MonkeyPatch, hashes: list[int]
) -> None:
    """Else a store could let an audit read for ever."""
    with pytest.raises(BadAnswer, match="no new message"):
        _listed(monkeypatch, lambda _: hashes)


def test_pages_of_a_query_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if each has new messages; the error says what to do."""
    monkeypatch.setattr(store_query, "MAX_PAGES", 20)
    with pytest.raises(TooManyPages, match=r"more than 20 pages: query a shorter"):
        _listed(monkeypatch, lambda number: [number])


def test_invalid_hash_in_a_listing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an audit would be complete without the message."""

    async def page(*_: object, **__: object) -> StorePage:
        return StorePage([], None, Undecodables(2, "'0x1' is no hash"))

    monkeypatch.setattr(NodeClient, "store_page", page)
    listing = StoreListing(NodeSettings("http://h"), {SHARD: ()})
    with pytest.raises(BadAnswer, match="invalid hash: '0x1' is no hash"):
        asyncio.run(listing.hashes(*_SPAN))


def test_page_has_at_most_the_requested_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A store that sends more could fill the memory of the audit."""
    with ConformanceNode() as node:
        offer(node, 3)
        query = store_query.StoreQuery(SHARD, page_size=2)
        page = ask(node, lambda client: client.store_page(query))
        assert len(page.messages) == 2
        # This is what the node is asked for instead.
        monkeypatch.setattr(
            "connectors.waku_rest.client._store_parameters",
            lambda *_: {"pubsubTopic": SHARD, "pageSize": "3"},
        )
        with pytest.raises(BadAnswer, match="has 3 messages, but at most 2"):
            ask(node, lambda client: client.store_page(query))


def test_topic_of_the_query_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic in the answer may have any length."""
    longest = "/" + "x" * 1_000

    async def page(*_: object, **__: object) -> StorePage:
        return StorePage([StoredMessage(_hash(1), longest, None)], None, Undecodables())

    monkeypatch.setattr(NodeClient, "store_page", page)
    listing = StoreListing(NodeSettings("http://h"), {SHARD: ()})
    assert asyncio.run(listing.hashes(*_SPAN)) == {_hash(1): SHARD}
