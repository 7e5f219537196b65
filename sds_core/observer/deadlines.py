"""Deadlines of one channel, fired in order by its event-time clock."""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterator


class Due(enum.IntEnum):
    """What a deadline is about; of two at one time the lower fires first."""

    ACKNOWLEDGEMENT = 0
    GAP_SETTLED = 1
    GAP_OVERDUE = 2
    EPISODE_EXPIRED = 3


class Deadlines:
    """A queue of deadlines.

    A deadline fires when the clock has passed it: an event at exactly the
    deadline is still in time (observer model, section 3). It may have become
    void by then: whoever handles it looks at the entry it names.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, Due, int]] = []

    def add(self, deadline_ms: int, due: Due, key: int) -> None:
        """Queue a deadline about the entry with this key."""
        heapq.heappush(self._heap, (deadline_ms, due, key))

    def passed(self, clock_ms: int) -> Iterator[tuple[int, Due, int]]:
        """Take out each deadline before the clock, also those added meanwhile."""
        while self._heap and self._heap[0][0] < clock_ms:
            yield heapq.heappop(self._heap)

    @property
    def next_ms(self) -> int | None:
        """The earliest deadline; None if none is pending."""
        return self._heap[0][0] if self._heap else None


def later(known_ms: int | None, time_ms: int) -> int:
    """The later of a time that may not be known and one that is."""
    return time_ms if known_ms is None else max(known_ms, time_ms)
