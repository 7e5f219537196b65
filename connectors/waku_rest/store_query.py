"""Queries to the store of a Waku node, and a loop that reads all pages of a query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from connectors.waku_rest.errors import BadAnswer, TooManyPages
from sds_core.prolly.tree import ProllyTree

MAX_CONTENT_TOPICS = 10
"""Maximum number of content topics in one query. If a query has more, the store refuses
all pages after the first."""

MAX_HASHES = 50
"""Maximum number of hashes in one query. If a query has more, the head of the HTTP
request may exceed the node's limit of 8 KiB."""

MAX_PAGE_SIZE = 100
"""The store's maximum page size."""

MAX_PAGES = 50_000
"""Maximum number of pages that are read of one query. They have up to five million
messages."""

_QUERY = "the query of the store"

_Item = TypeVar("_Item")

ReadPage = Callable[[bytes | None], Awaitable[bytes | None]]
"""A function that reads the page at a cursor and returns the cursor of the next page.

The cursor of the first page is None. After the last page, the function returns None.
"""


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """Conditions on the messages of a store; all conditions must hold.

    Attributes:
        pubsub_topic: Required pubsub topic; None allows all.
        content_topics: Allowed content topics, at most `MAX_CONTENT_TOPICS`; empty for
            all.
        start_ns, end_ns: Inclusive bounds of the sender's time, Unix ns, at least 1.
        hashes: Allowed message hashes, at most `MAX_HASHES`; empty for all.
        page_size: Maximum number of messages in a page, in [1, `MAX_PAGE_SIZE`].
        ascending: Whether the first page has the oldest messages. Within a page, the
            oldest message is always first.

    Raises:
        ValueError: The API does not support these conditions.
    """

    pubsub_topic: str | None = None
    content_topics: Sequence[str] = ()
    start_ns: int | None = None
    end_ns: int | None = None
    hashes: Sequence[bytes] = ()
    page_size: int = MAX_PAGE_SIZE
    ascending: bool = True

    def __post_init__(self) -> None:
        """Reject queries that a node would misunderstand or answer incompletely."""
        _check_number("content topics", len(self.content_topics), MAX_CONTENT_TOPICS)
        _check_number("hashes", len(self.hashes), MAX_HASHES)
        _check_number("messages per page", self.page_size, MAX_PAGE_SIZE)
        if self.page_size < 1:
            message = f"a page must have at least 1 message, not {self.page_size}"
            raise ValueError(message)
        for topic in self.content_topics:
            if "," in topic:
                message = (
                    f"a store cannot filter by content topic {topic!r}: this topic "
                    "contains a comma"
                )
                raise ValueError(message)


def _check_number(what: str, number: int, most: int) -> None:
    if number > most:
        message = (
            f"a store accepts at most {most} {what}, not {number}: send several queries"
        )
        raise ValueError(message)


def in_parts(items: Sequence[_Item], most: int) -> Iterator[Sequence[_Item]]:
    """Yield the items in parts of at most `most` items."""
    for first in range(0, len(items), most):
        yield items[first : first + most]


def queries_of(
    topics: Mapping[str, Sequence[str]], start_ns: int, end_ns: int
) -> Iterator[StoreQuery]:
    """Yield queries that together select all messages on some topics in a time span.

    `topics` has the content topics of each pubsub topic; an empty sequence selects all
    messages on the pubsub topic. `start_ns` and `end_ns` are inclusive bounds of the
    sender's time, Unix ns, at least 1.
    """
    for pubsub_topic, content_topics in topics.items():
        parts = in_parts(content_topics, MAX_CONTENT_TOPICS) if content_topics else [()]
        for part in parts:
            yield StoreQuery(pubsub_topic, part, start_ns, end_ns)


async def follow(
    read_page: ReadPage, node: str, is_ending: Callable[[], bool] = lambda: False
) -> bool:
    """Read all pages of a query; return whether the last page was read.

    `node` is the node's URL, for the error's message. `is_ending` is called before each
    page; if it returns True, no more pages are read.

    Raises:
        BadAnswer: The node returned the same cursor twice.
        TooManyPages: The query has more than `MAX_PAGES` pages.
    """
    cursor: bytes | None = None
    cursors: set[bytes] = set()
    while not is_ending():
        cursor = await read_page(cursor)
        if cursor is None:
            return True
        if cursor in cursors:
            raise BadAnswer(node, _QUERY, "its cursors repeat")
        cursors.add(cursor)
        if len(cursors) >= MAX_PAGES:
            raise TooManyPages(node, _QUERY, MAX_PAGES)
    return False


def onward_query(
    tree: ProllyTree,
    pubsub_topic: str | None = None,
    content_topics: Sequence[str] = (),
) -> StoreQuery:
    """Return the query for all messages from the time of a tree's last message on.

    After a synchronisation, the trees of both peers may lack messages that were sent
    after the synchronisation began (75/WAKU2-SYNC, Implementation). The query
    includes the time of the last message, because another message may have the same
    time.
    """
    last = tree.last()
    start_ns = 1 if last is None else last.timestamp_ns
    return StoreQuery(pubsub_topic, content_topics, start_ns)
