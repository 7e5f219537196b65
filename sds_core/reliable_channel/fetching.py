"""Queries stores by hash for missing messages, and by time after the node connects.

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


def hashes_to_query(
    missing: Mapping[str, Iterable[bytes]],
    asked_ms: Mapping[str, int],
    most: int,
    now_ms: int,
) -> tuple[tuple[bytes, ...], dict[str, int]]:
    """Return at most `most` hashes to query, and the updated `asked_ms`.

    The messages that were never queried, or were queried longest ago, come first.

    Args:
        missing: By message id, the retrieval hints of each missing message, newest hint
            first. Only hints of 32 bytes can be queried.
        asked_ms: See `FetchingState`.
        most: Maximum number of hashes.
        now_ms: Current time, Unix ms.
    """
    hashes = {
        message_id: usable
        for message_id, hints in missing.items()
        if (usable := [hint for hint in hints if len(hint) == _HASH_BYTES])
    }
    asked_ms = {key: asked_ms.get(key, 0) for key in hashes}
    chosen: dict[bytes, None] = {}
    for message_id in sorted(hashes, key=asked_ms.__getitem__):
        more = chosen | dict.fromkeys(hashes[message_id])
        if chosen and len(more) > most:
            break
        chosen = more
        asked_ms[message_id] = now_ms
    return tuple(chosen)[:most], asked_ms


class FetchingState(msgspec.Struct, array_like=True):
    """State for a snapshot.

    Attributes:
        number: Number of the latest query.
        connect_number, retrieval_number: Numbers of the running queries by time and by
            hash; None if no such query runs.
        retrieval_ms: When the next query by hash is due, Unix ms; inf if none is
            planned.
        asked_ms: By message id, when the missing message was last queried, Unix ms; 0
            if never.
    """

    has_store: bool
    number: int
    connect_number: int | None
    retrieval_number: int | None
    retrieval_ms: int | float
    asked_ms: dict[str, int]
    on_connect: QueryState


class Fetching:
    """Makes queries to a store, and processes the answers.

    Attributes:
        state: State for a snapshot.
    """

    def __init__(self, options: ReliableChannelOptions, inward: Inward) -> None:
        self._inward = inward
        self._options = options
        self.restore(FetchingState(False, 0, None, None, inf, {}, QueryState()))

    @property
    def next_ms(self) -> float:
        """When the next query is due, Unix ms; inf if none is planned or possible."""
        state = self.state
        if not state.has_store:
            return inf
        retrieval_ms = inf if state.retrieval_number else state.retrieval_ms
        return min(retrieval_ms, self._on_connect.next_ms)

    def start(self, now_ms: int) -> None:
        """Start to make queries."""
        if self._options.retrieval.uses_store:
            self.state.retrieval_ms = now_ms + self._options.retrieve_frequency_ms
        self._on_connect.reconnected()

    def stop(self) -> None:
        """Make no more queries, and ignore answers to running queries."""
        self._on_connect.failed()
        self.state.retrieval_ms = inf
        self.state.connect_number = self.state.retrieval_number = None
        self.state.has_store = False

    def connected(self, *, has_store: bool, was_offline: bool) -> None:
        """Record whether a store can be queried. After a reconnection, plan a query."""
        if has_store and (was_offline or not self.state.has_store):
            self._on_connect.reconnected()
        self.state.has_store = has_store

    def make_due(
        self, missing: Mapping[str, Sequence[bytes]], now_ms: int, out: Output
    ) -> None:
        """Make the queries that are due. See `hashes_to_query` for `missing`."""
        state, options = self.state, self._options
        if not state.has_store:
            return
        if self._on_connect.next_ms <= now_ms:
            start_ms, end_ms = self._on_connect.begin(now_ms)
            self._query_time(start_ms, end_ms, None, out)
        if state.retrieval_number is None and state.retrieval_ms <= now_ms:
            state.retrieval_ms = now_ms + options.retrieve_frequency_ms
            most = options.limits.hashes_per_query
            hashes, state.asked_ms = hashes_to_query(
                missing, state.asked_ms, most, now_ms
            )
            if hashes:
                state.retrieval_number = self._next_number()
                query = StoreRequest(state.retrieval_number, hashes=hashes)
                out.queries.append(query)

    def answered(self, answer: StoreAnswered, out: Output) -> bool:
        """Process an answer; return whether it belongs to a running query.

        If a query by time needs another page, query for this page.
        """
        if answer.number == self.state.retrieval_number:
            self.state.retrieval_number = None
            return True
        if answer.number != self.state.connect_number:
            return False
        self.state.connect_number = None
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
        """Record that a query received no answer. The query is repeated later."""
        if number == self.state.retrieval_number:
            self.state.retrieval_number = None
        elif number == self.state.connect_number:
            self.state.connect_number = None
            self._on_connect.failed()

    def forget_times(self) -> None:
        """Forget when queries were made, because the clock was ahead before a restart.

        The next query on connect covers its longest period, because the end
        of the previous query's period may be wrong.
        """
        state = msgspec.structs.replace(
            self.state, asked_ms={}, on_connect=QueryState()
        )
        self.restore(state)

    def restore(self, state: FetchingState) -> None:
        """Continue with the state of a snapshot."""
        self.state = state
        self._on_connect = QueryOnConnect(self._options, state.on_connect)

    def _query_time(
        self, start_ms: int, end_ms: int, cursor: bytes | None, out: Output
    ) -> None:
        number = self.state.connect_number = self._next_number()
        page_size = self._options.limits.page_size
        query = StoreRequest(number, (), start_ms, end_ms, cursor, page_size)
        out.queries.append(query)

    def _next_number(self) -> int:
        self.state.number += 1
        return self.state.number
