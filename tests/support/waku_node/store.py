"""The node's store, and the queries that it answers.

Sources: logos-delivery rest_api/endpoint/store/handlers.nim, waku_archive/archive.nim.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Self
from urllib.parse import unquote_plus

from starlette.datastructures import QueryParams

from sds_core.waku import WakuMessage
from tests.support.waku_node.cache import Entry

MAX_PAGE_SIZE = 100
DEFAULT_PAGE_SIZE = 20
MAX_CONTENT_TOPICS = 10
_MIN_NS, _MAX_NS = -(2**63), 2**63


class BadQuery(ValueError):
    """A store refuses a query, with an HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class StoreQuery:
    """A query, read from the parameters of its request."""

    include_data: bool
    pubsub_topic: str
    content_topics: frozenset[str]
    start_ns: int
    end_ns: int
    hashes: frozenset[bytes]
    cursor: bytes | None
    page_size: int
    ascending: bool

    @classmethod
    def read(cls, given: QueryParams) -> Self:
        """Read the parameters of a request.

        Raises:
            BadQuery: A number or a hash is invalid.
        """
        cursor = given.get("cursor")
        page_size = _integer(given, "pageSize", DEFAULT_PAGE_SIZE)
        return cls(
            include_data=given.get("includeData", "false") == "true",
            # The handler decodes what the server has decoded before.
            pubsub_topic=unquote_plus(given.get("pubsubTopic", "")),
            content_topics=frozenset(
                text
                for text in unquote_plus(given.get("contentTopics", "")).split(",")
                if text
            ),
            start_ns=max(_integer(given, "startTime", 0), 0) or _MIN_NS,
            end_ns=max(_integer(given, "endTime", 0), 0) or _MAX_NS,
            hashes=frozenset(
                _read_hash(text) for text in given.get("hashes", "").split(",") if text
            ),
            cursor=_read_hash(cursor) if cursor else None,
            page_size=min(page_size, MAX_PAGE_SIZE) or DEFAULT_PAGE_SIZE,
            ascending=given.get("ascending", "true") == "true",
        )

    def wants(self, entry: Entry) -> bool:
        """Whether topics and hashes fit; times and cursor are not looked at."""
        return (
            self.pubsub_topic in ("", entry.pubsub_topic)
            and (
                not self.content_topics
                or entry.message.content_topic in self.content_topics
            )
            and (not self.hashes or entry.hash in self.hashes)
        )


class Store:
    """Messages in the order of sender's time and hash."""

    def __init__(self) -> None:
        self._entries: dict[bytes, Entry] = {}
        self._order: list[tuple[int, bytes]] = []

    def messages(self) -> dict[bytes, WakuMessage]:
        """All messages by hash."""
        return {one.hash: one.message for one in self._entries.values()}

    def put(self, entry: Entry) -> None:
        """Add a message, unless the store has it."""
        if entry.hash not in self._entries:
            self._entries[entry.hash] = entry
            insort(self._order, _position(entry))

    def find(self, query: StoreQuery) -> tuple[list[Entry], bytes | None]:
        """A page, oldest first, and the cursor to the next.

        Raises:
            BadQuery: The cursor is unknown, or comes with too many content topics.
        """
        begin = bisect_left(self._order, (query.start_ns, b""))
        end = bisect_left(self._order, (query.end_ns + 1, b""))
        if query.cursor is not None:
            if len(query.content_topics) > MAX_CONTENT_TOPICS:
                raise BadQuery("too many content topics", 500)
            last = self._entries.get(query.cursor)
            if last is None:
                raise BadQuery("cursor not found", 500)
            if query.ascending:
                begin = max(begin, bisect_right(self._order, _position(last)))
            else:
                end = min(end, bisect_left(self._order, _position(last)))
        along: Iterable[int] = range(begin, end)
        if not query.ascending:
            along = reversed(range(begin, end))
        entries = (self._entries[self._order[index][1]] for index in along)
        wanted = (one for one in entries if query.wants(one))
        rows = list(islice(wanted, query.page_size + 1))
        page = rows[: query.page_size]
        cursor = page[-1].hash if len(rows) > len(page) else None
        return page if query.ascending else page[::-1], cursor


def _position(entry: Entry) -> tuple[int, bytes]:
    return entry.message.timestamp_ns, entry.hash


def _read_hash(text: str) -> bytes:
    try:
        decoded = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        decoded = b""
    if len(decoded) != 32:
        message = f"waku message hash parsing error: {text}"
        raise BadQuery(message)
    return decoded


def _integer(given: QueryParams, name: str, default: int) -> int:
    text = given.get(name, "")
    try:
        return int(text) if text else default
    except ValueError:
        message = f"{name} parsing error: {text}"
        raise BadQuery(message) from None
