"""When a mirror must have missed messages, by the node's own log."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from math import inf
from typing import NamedTuple

from tests.support.waku_node import ConformanceNode, Endpoint

_NS = 1_000_000

_LISTENING = (Endpoint.RELAY, Endpoint.SUBSCRIBE_RELAY)


class Break(NamedTuple):
    """Something that a mirror must or may take for a loss, which it shows as a hole.

    The mirror notices it after the last page that it read before, and no later than at
    its second request after: how long that takes is left to the machine.

    Attributes:
        from_ms: Last page read before, Unix ms.
        until_ms: Second request afterwards; infinite if there was none.
        has_dropped: Whether the node dropped messages, or the mirror was killed: then
            there must be a hole. Otherwise there may be one: after a page that was
            full or came too late, or when the node was away.
    """

    from_ms: float
    until_ms: float
    has_dropped: bool

    def meets(self, begin_ms: float, end_ms: float) -> bool:
        """Whether a hole can be of this break.

        Args:
            begin_ms: Time of the last record before the hole.
            end_ms: Time of the first record after it.
        """
        return begin_ms <= self.until_ms and self.from_ms <= end_ms


class Kill(NamedTuple):
    """When a mirror was killed: at some moment of a span, Unix ms."""

    from_ms: float
    until_ms: float


def breaks_of(node: ConformanceNode, cache: int, kill: Kill) -> list[Break]:
    """All breaks of a mirror that listens to the relay cache of a node.

    Args:
        node: That was listened to.
        cache: Messages that its cache holds.
        kill: When the mirror was killed.
    """
    calls = [one for one in node.calls if one.endpoint in _LISTENING]
    asked_ms = sorted(one.at_ns / _NS for one in calls)
    read_ms = sorted(
        one.at_ns / _NS
        for one in calls
        if one.endpoint is Endpoint.RELAY and one.status == 200
    )
    dropped = [
        one.at_ns for one in node.dropped if one.endpoint in (Endpoint.RELAY, None)
    ]
    pages = Counter(
        one.at_ns for one in node.handed_out if one.endpoint is Endpoint.RELAY
    )
    suspected = [at_ns for at_ns, count in pages.items() if count >= cache]
    suspected += [one.at_ns for one in node.offers if not one.arrived]
    # The mirror gave up waiting, and cannot know what the answer held.
    suspected += [one.at_ns for one in calls if not one.arrived]
    found: set[Break] = set()

    def add(from_ms: float, until_ms: float, has_dropped: bool) -> None:
        before = bisect_left(read_ms, from_ms)
        # Nothing is known to be lost of a node that was never heard.
        if before:
            after = bisect_right(asked_ms, until_ms) + 1
            second_ms = asked_ms[after] if after < len(asked_ms) else inf
            # Records have whole milliseconds.
            found.add(Break(int(read_ms[before - 1]), second_ms, has_dropped))

    for at_ns in dropped:
        add(at_ns / _NS, at_ns / _NS, True)
    for at_ns in suspected:
        add(at_ns / _NS, at_ns / _NS, False)
    add(*kill, has_dropped=True)
    return sorted(found)
