"""The query for messages behind the last one of a tree (75/WAKU2-SYNC, Implementation).

Both sides of a synchronisation may lack them: they were sent after it began.
"""

from __future__ import annotations

from collections.abc import Sequence

from connectors.waku_rest.store_query import StoreQuery
from sds_core.prolly.tree import ProllyTree


def onward_query(
    tree: ProllyTree,
    pubsub_topic: str | None = None,
    content_topics: Sequence[str] = (),
) -> StoreQuery:
    """Return the query for what a store has behind the last message of a tree.

    Another message may have the time of the last one, so that time is included.

    Args:
        tree: Messages that are there.
        pubsub_topic: See `StoreQuery`.
        content_topics: See `StoreQuery`.
    """
    last = tree.last()
    start_ns = 1 if last is None else last.timestamp_ns
    return StoreQuery(pubsub_topic, content_topics, start_ns)
