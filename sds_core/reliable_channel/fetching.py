"""Queries a store: by hash for missing messages, by time after a connection.

At most one query of each kind runs at a time, which limits the load on stores. Source:
RELIABLE-CHANNEL-API, "Missing message retrieval".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

import msgspec

from sds_core.reliable_channel.inputs import StoreAnswered
from sds_core.reliable_channel.inward import Inward
from sds_core.reliable_channel.options import ReliableChannelOptions
from sds_core.reliable_channel.outputs import Output, StoreRequest
from sds_core.reliable_channel.query_on_connect import QueryOnConnect, QueryState

_HASH_BYTES = 32


class Retrieval:
    """Plans queries for missing messages by their retrieval hints.

    Attributes:
        next_ms: When the next query is due, Unix ms; inf while stopped.
        asked_ms: When each missing message was last queried, by id, Unix ms; 0 if
            never.
    """

    def __init__(self, frequency_ms: int, hashes: int) -> None:
        self._frequency_ms = frequency_ms
        self._hashes = hashes
        self.asked_ms: dict[str, int] = {}
        self.next_ms: float = inf

    def start(self, now_ms: int) -> None:
        """Begin the interval."""
        self.next_ms = now_ms + self._frequency_ms

    def stop(self) -> None:
        """Plan no more queries."""
        self.next_ms = inf

    def take_due(
        self, missing: Mapping[str, Iterable[bytes]], now_ms: int
    ) -> tuple[bytes, ...]:
        """Return the hashes to query now; least recently queried messages come first.

        Args:
            missing: Hints of each missing message, newest first. A message without a
                hint of 32 bytes cannot be queried.
            now_ms: Unix ms.
        """
        self.next_ms = now_ms + self._frequency_ms
        hashes = {
            message_id: usable
            for message_id, hints in missing.items()
            if (usable := [hint for hint in hints if len(hint) == _HASH_BYTES])
        }
        asked_ms = {key: self.asked_ms.get(key, 0) for key in hashes}
        chosen: dict[bytes, None] = {}
        for message_id in sorted(hashes, key=asked_ms.__getitem__):
            more = chosen | dict.fromkeys(hashes[message_id])
            if chosen and len(more) > self._hashes:
                break
            chosen = more
            asked_ms[message_id] = now_ms
        self.asked_ms = asked_ms
        return tuple(chosen)[: self._hashes]


class FetchingState(msgspec.Struct, array_like=True):
    """State for a snapshot; a number identifies each running query."""

    has_store: bool
    number: int
    connect_number: int | None
    retrieval_number: int | None
    retrieval_ms: int | float
    asked_ms: dict[str, int]
    on_connect: QueryState


class Fetching:
    """Makes queries, and processes the answers."""

    def __init__(self, options: ReliableChannelOptions, inward: Inward) -> None:
        self._inward = inward
        self._limits = options.limits
        self._uses_store = options.retrieval.uses_store
        self._retrieval = Retrieval(
            options.retrieve_frequency_ms, options.limits.hashes_per_query
        )
        self._on_connect = QueryOnConnect(
            is_enabled=options.query_on_connect,
            after_ms=options.query_on_connect_after_ms,
            range_ms=options.query_on_connect_range_ms,
            min_gap_ms=options.retrieve_frequency_ms,
            pages=options.limits.pages_per_query,
        )
        self._has_store = False
        self._number = 0
        self._connect_number: int | None = None
        self._retrieval_number: int | None = None

    @property
    def next_ms(self) -> float:
        """When a query is due, Unix ms; inf if none is planned or possible."""
        if not self._has_store:
            return inf
        retrieval_ms = inf if self._retrieval_number else self._retrieval.next_ms
        return min(retrieval_ms, self._on_connect.next_ms)

    def start(self, now_ms: int) -> None:
        """Begin to query."""
        if self._uses_store:
            self._retrieval.start(now_ms)
        self._on_connect.reconnected()

    def stop(self) -> None:
        """Make no more queries, and ignore answers to running queries."""
        self._retrieval.stop()
        self._on_connect.failed()
        self._connect_number = self._retrieval_number = None
        self._has_store = False

    def connected(self, *, has_store: bool, was_offline: bool) -> None:
        """Record whether a store can be queried."""
        if has_store and (was_offline or not self._has_store):
            self._on_connect.reconnected()
        self._has_store = has_store

    def make_due(
        self, missing: Mapping[str, Sequence[bytes]], now_ms: int, out: Output
    ) -> None:
        """Make the queries that are due, with all hints of missing messages."""
        if not self._has_store:
            return
        if self._on_connect.next_ms <= now_ms:
            start_ms, end_ms = self._on_connect.begin(now_ms)
            self._query_time(start_ms, end_ms, None, out)
        if self._retrieval_number is None and self._retrieval.next_ms <= now_ms:
            hashes = self._retrieval.take_due(missing, now_ms)
            if hashes:
                self._retrieval_number = self._next_number()
                query = StoreRequest(self._retrieval_number, hashes=hashes)
                out.queries.append(query)

    def answered(self, answer: StoreAnswered, out: Output) -> bool:
        """Process an answer, and query for the next page if necessary.

        Returns:
            Whether the answer belongs to one of our queries.
        """
        if answer.number == self._retrieval_number:
            self._retrieval_number = None
            return True
        if answer.number != self._connect_number:
            return False
        self._connect_number = None
        covered = self._on_connect.state.range
        found_channel = any(map(self._inward.is_of_channel, answer.messages))
        has_next = answer.cursor is not None
        more = self._on_connect.wants_more(
            found_channel=found_channel, has_next=has_next
        )
        if more and covered is not None:
            self._query_time(*covered, answer.cursor, out)
        return True

    def failed(self, number: int) -> None:
        """Record that a query received no answer; it is repeated later."""
        if number == self._retrieval_number:
            self._retrieval_number = None
        elif number == self._connect_number:
            self._connect_number = None
            self._on_connect.failed()

    def state(self) -> FetchingState:
        """Return the state for a snapshot."""
        return FetchingState(
            self._has_store,
            self._number,
            self._connect_number,
            self._retrieval_number,
            self._retrieval.next_ms,
            self._retrieval.asked_ms,
            self._on_connect.state,
        )

    def restore(self, state: FetchingState) -> None:
        """Restore the result of `state`."""
        self._has_store = state.has_store
        self._number = state.number
        self._connect_number = state.connect_number
        self._retrieval_number = state.retrieval_number
        self._retrieval.next_ms = state.retrieval_ms
        self._retrieval.asked_ms = state.asked_ms
        self._on_connect.state = state.on_connect

    def _query_time(
        self, start_ms: int, end_ms: int, cursor: bytes | None, out: Output
    ) -> None:
        number = self._connect_number = self._next_number()
        page_size = self._limits.page_size
        query = StoreRequest(number, (), start_ms, end_ms, cursor, page_size)
        out.queries.append(query)

    def _next_number(self) -> int:
        self._number += 1
        return self._number
