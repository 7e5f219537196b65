"""Decides when to query a store for messages missed offline ("Query on connect").

A query reads backwards in time, page by page. It stops at a page that contains another
participant's message with a causal history. Through this history, SDS finds earlier
missing messages.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import msgspec

from sds_core.reliable_channel.options import ReliableChannelOptions

_CLOCK_DRIFT_MS = 20_000
"""Maximum error of senders' clocks that stores accept (logos-delivery), ms.

For this time after a query, a store may still receive messages of the queried period.
"""


class TimeRange(NamedTuple):
    """The period of senders' times that a query covers, Unix ms."""

    start_ms: int
    end_ms: int


class QueryState(msgspec.Struct, array_like=True):
    """State for a snapshot.

    Attributes:
        is_wanted: Whether the next query does not wait for `query_on_connect_after_ms`.
        done_ms: End of the time that complete queries cover, Unix ms; None before the
            first complete query.
        range: The time that the running query covers; None if no query runs.
    """

    is_wanted: bool = True
    began_ms: int | float = -inf
    done_ms: int | None = None
    range: TimeRange | None = None
    pages_left: int = 0


class QueryOnConnect:
    """Decides when a query begins, what time it covers, and when it ends.

    Attributes:
        state: State for a snapshot.
    """

    def __init__(self, options: ReliableChannelOptions, state: QueryState) -> None:
        self._options = options
        self.state = state

    @property
    def next_ms(self) -> float:
        """When to query a store, if any is available, Unix ms; inf during a query."""
        if not self._options.query_on_connect or self.state.range is not None:
            return inf
        # Connections may flap, so queries have a minimum interval.
        earliest_ms = self.state.began_ms + self._options.retrieve_frequency_ms
        if self.state.is_wanted:
            return earliest_ms
        after_ms = self._options.query_on_connect_after_ms
        return max(earliest_ms, self.state.began_ms + after_ms)

    def reconnected(self) -> None:
        """Request a query: a store became available, or the node is online again."""
        self.state.is_wanted = True

    def begin(self, now_ms: int) -> TimeRange:
        """Begin a query, and return the time that it covers."""
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
        """Process one page; return whether to query for the next page."""
        if self.state.range is None:
            return False
        self.state.pages_left -= 1
        if not found_channel and has_next and self.state.pages_left:
            return True
        self.state.done_ms = self.state.range.end_ms
        self.state.range = None
        return False

    def failed(self) -> None:
        """End the query without success, so that another query becomes due."""
        self.state.range = None
        self.state.is_wanted = True
