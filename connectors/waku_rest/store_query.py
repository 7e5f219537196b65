"""A query to the store of a Waku node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

MAX_CONTENT_TOPICS = 10
"""Content topics in one query: with more, the store refuses every page but the
first."""

MAX_HASHES = 50
"""Hashes in one query: more may exceed the 8 KiB that the node reads of a request's
head."""

MAX_PAGE_SIZE = 100
"""Upper limit of the store, also if a query requests more."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """Conditions on the messages of a store; all of them must hold.

    Attributes:
        pubsub_topic: Pubsub topic that a message was relayed on; None for any.
        content_topics: Allowed content topics, at most `MAX_CONTENT_TOPICS`; empty for
            all.
        start_ns, end_ns: Sender's time, Unix ns, at least 1, both inclusive.
        hashes: Allowed message hashes, at most `MAX_HASHES`; empty for all.
        page_size: Messages in a page, in [1, `MAX_PAGE_SIZE`].
        ascending: Whether the oldest page comes first; within a page the oldest
            message always does.

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
        _check_number("messages a page", self.page_size, MAX_PAGE_SIZE)
        if self.page_size < 1:
            message = f"a page of a store has at least 1 message, not {self.page_size}"
            raise ValueError(message)
        for topic in self.content_topics:
            if "," in topic:
                message = f"a store cannot be asked for {topic!r}: it has a comma"
                raise ValueError(message)


def _check_number(what: str, number: int, most: int) -> None:
    if number > most:
        message = f"a store gives at most {most} {what}, not {number}: ask in parts"
        raise ValueError(message)


def in_parts(items: Sequence[_Item], most: int) -> Iterator[Sequence[_Item]]:
    """Yield the items in parts of at most `most`."""
    for first in range(0, len(items), most):
        yield items[first : first + most]
