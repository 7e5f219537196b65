"""Decides when to query a store for messages that were sent while the node was offline.

A query on connect reads a store's messages backwards in time, page by page. The query
stops at a page that contains another participant's message with a causal history,
because SDS finds earlier missing messages through this history. Source:
RELIABLE-CHANNEL-API, "Query on connect".
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import msgspec

from sds_core.reliable_channel.options import ReliableChannelOptions

_CLOCK_DRIFT_MS = 20_000
"""Maximum error of senders' clocks that stores accept (logos-delivery), ms.

After a query, a store may still receive messages whose senders' time is in the queried
period. So the period of the next query begins this much before the end of the queried
period.
"""


class TimeRange(NamedTuple):
    """The period that a query covers, in times that senders set, Unix ms."""

    start_ms: int
    end_ms: int


class QueryState(msgspec.Struct, array_like=True):
    """State for a snapshot.

    Attributes:
        is_wanted: Whether a query was requested. A requested query does not wait until
            `query_on_connect_after_ms` has passed.
        done_ms: End of the period that the last successful query covered, Unix ms; None
            before the first successful query.
        range: The period that the running query covers; None if no query runs.
    """

    is_wanted: bool = True
    began_ms: int | float = -inf
    done_ms: int | None = None
    range: TimeRange | None = None
    pages_left: int = 0


class QueryOnConnect:
    """Decides when a query begins, which period it covers, and when it ends.

    Attributes:
        state: State for a snapshot.
    """

    def __init__(self, options: ReliableChannelOptions, state: QueryState) -> None:
        self._options = options
        self.state = state

    @property
    def next_ms(self) -> float:
        """When the next query is due if a store is available, Unix ms.

        The result is inf during a query, or if the option `query_on_connect` is off.
        """
        if not self._options.query_on_connect or self.state.range is not None:
            return inf
        # If a connection is lost and restored often, the minimum interval limits the
        # number of queries.
        earliest_ms = self.state.began_ms + self._options.retrieve_frequency_ms
        if self.state.is_wanted:
            return earliest_ms
        after_ms = self._options.query_on_connect_after_ms
        return max(earliest_ms, self.state.began_ms + after_ms)

    def reconnected(self) -> None:
        """Request a query, because a store is available or the node is online again."""
        self.state.is_wanted = True

    def begin(self, now_ms: int) -> TimeRange:
        """Begin a query, and return the period that it covers."""
        start_ms = max(1, now_ms - self._options.query_on_connect_range_ms)
        if self.state.done_ms is not None:
            start_ms = max(start_ms, self.state.done_ms - _CLOCK_DRIFT_MS)
        self.state.is_wanted = False
        self.state.began_ms = now_ms
        self.state.pages_left = self._options.limits.pages_per_query
        covered = TimeRange(min(start_ms, now_ms), now_ms)
        self.state.range = covered
        return covered

    def wants_more(self, *, found_channel: bool, has_next: bool) -> bool:
        """Record that a page has arrived; return whether to query for the next page."""
        if self.state.range is None:
            return False
        self.state.pages_left -= 1
        if not found_channel and has_next and self.state.pages_left:
            return True
        self.state.done_ms = self.state.range.end_ms
        self.state.range = None
        return False

    def failed(self) -> None:
        """Record that the running query failed, and request another query."""
        self.state.range = None
        self.state.is_wanted = True
