"""Lists the messages of a node's store in a time span, and fetches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tenacity import (
    retry,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from connectors.waku_rest.answers import StorePage
from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.connection import NodeSettings, open_client
from connectors.waku_rest.errors import BadAnswer, NodeBusy, NodeUnreachable
from connectors.waku_rest.store_query import (
    MAX_HASHES,
    StoreQuery,
    follow,
    in_parts,
    queries_of,
)
from sds_core.waku import WakuMessage

_ATTEMPTS = 5

_QUERY = "the query of the store"


class StoreListing:
    """Reads messages on some topics from one node's store.

    `topics` has the content topics of each pubsub topic; an empty sequence selects all
    messages on the pubsub topic. Methods raise `NodeError` if the node is unreachable,
    refuses the request, or sends an invalid answer.
    """

    def __init__(self, node: NodeSettings, topics: Mapping[str, Sequence[str]]) -> None:
        self._settings = node
        self._topics = topics

    async def hashes(self, start_ns: int, end_ns: int) -> dict[bytes, str]:
        """Return the messages in a time span: message hash -> pubsub topic.

        `start_ns` and `end_ns` are inclusive bounds of the sender's time, Unix ns, at
        least 1.
        """
        found: dict[bytes, str] = {}
        async with open_client(self._settings) as http:
            node = NodeClient(self._settings.url, http)
            for query in queries_of(self._topics, start_ns, end_ns):
                await follow(partial(_read, node, query, found), node.url)
        return found

    async def messages(
        self, hashes: Mapping[bytes, str]
    ) -> dict[bytes, tuple[str, WakuMessage]]:
        """Fetch messages: message hash -> pubsub topic and message.

        The result lacks hashes that the store does not have. If the node does not
        return a pubsub topic, the pubsub topic in `hashes` is used.
        """
        found = {}
        async with open_client(self._settings) as http:
            node = NodeClient(self._settings.url, http)
            for some in in_parts(list(hashes), MAX_HASHES):
                query = StoreQuery(hashes=some)
                page = await _page(node, query, None, include_data=True)
                for stored in page.messages:
                    topic = stored.pubsub_topic or hashes.get(stored.hash)
                    if stored.message is None or topic is None:
                        continue
                    message_hash = stored.message.hash_on(topic)
                    if message_hash in hashes:
                        found[message_hash] = (topic, stored.message)
        return found


async def _read(
    node: NodeClient, query: StoreQuery, found: dict[bytes, str], cursor: bytes | None
) -> bytes | None:
    page = await _page(node, query, cursor, include_data=False)
    if page.undecodable.count:
        # Without this error, an audit would be complete although the store has
        # messages that were not compared.
        detail = (
            "the store's answer contains a message with an invalid hash: "
            f"{page.undecodable.reason}"
        )
        raise BadAnswer(node.url, _QUERY, detail)
    before = len(found)
    # The topic of the query is used, because a topic in the answer may have any length.
    found |= dict.fromkeys(
        (one.hash for one in page.messages), query.pubsub_topic or ""
    )
    if page.cursor is not None and len(found) == before:
        detail = "a page of the store has no new message, but is not the last page"
        raise BadAnswer(node.url, _QUERY, detail)
    return page.cursor


@retry(
    retry=retry_if_exception_type((NodeBusy, NodeUnreachable)),
    stop=stop_after_attempt(_ATTEMPTS),
    wait=wait_random_exponential(multiplier=0.5, max=10.0),
    reraise=True,
)
async def _page(
    node: NodeClient, query: StoreQuery, cursor: bytes | None, include_data: bool
) -> StorePage:
    return await node.store_page(query, cursor, include_data=include_data)
