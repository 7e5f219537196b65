"""Deadlines of one channel, fired in order by its event-time clock."""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterator

from sds_core.native import native

NEVER = 1 << 62


class Due(enum.IntEnum):
    """Kind of a deadline; of two at the same time the lower value fires first."""

    ACKNOWLEDGEMENT = 0
    GAP_SETTLED = 1
    GAP_OVERDUE = 2
    EPISODE_EXPIRED = 3
    SEGMENTS_IDLE = 4


@native
class Deadlines:
    """A queue of deadlines.

    A deadline fires when the clock has passed it: an event at exactly the deadline is
    in time (docs/figures.md, 3). Deadlines cannot be removed. One may be void when it
    fires, so its handler checks the entry that its key names.
    """

    next_at: int
    """The earliest deadline, Unix ms; `NEVER` if there is none."""
    # Deadline, kind, key, and the list whose next deadline follows it, or -1.
    _heap: list[tuple[int, Due, int, int]]
    # Kind, and deadlines and keys in reverse order, of each list.
    _lists: list[tuple[Due, list[tuple[int, int]]]]

    def __init__(self) -> None:
        self._heap = []
        self._lists = []
        self.next_at = NEVER

    def add(self, deadline_ms: int, due: Due, key: int) -> None:
        """Queue a deadline, Unix ms, for the entry with this key."""
        self._push((deadline_ms, due, key, -1))

    def add_all(self, due: Due, entries: list[tuple[int, int]]) -> None:
        """Queue many deadlines of one kind, of which few pass soon.

        Args:
            due: The kind.
            entries: Deadline, Unix ms, and key of each. The queue keeps the list.
        """
        entries.sort(reverse=True)
        self._lists.append((due, entries))
        self._push_next(len(self._lists) - 1)

    def _push_next(self, number: int) -> None:
        due, entries = self._lists[number]
        if entries:
            deadline_ms, key = entries.pop()
            self._push((deadline_ms, due, key, number))

    def _push(self, one: tuple[int, Due, int, int]) -> None:
        heapq.heappush(self._heap, one)
        if one[0] < self.next_at:
            self.next_at = one[0]

    def passed(self, clock_ms: int) -> Iterator[tuple[int, Due, int]]:
        """Removes and yields each deadline before the clock, in order.

        Includes deadlines that are added during the iteration.
        """
        while self._heap and self._heap[0][0] < clock_ms:
            deadline_ms, due, key, number = heapq.heappop(self._heap)
            if number >= 0:
                self._push_next(number)
            self.next_at = self._heap[0][0] if self._heap else NEVER
            yield deadline_ms, due, key

    @property
    def next_ms(self) -> int | None:
        """The earliest deadline, Unix ms; None if there is none."""
        return self._heap[0][0] if self._heap else None


def later(known_ms: int | None, time_ms: int) -> int:
    """The later of two times; the second if the first is None."""
    return time_ms if known_ms is None else max(known_ms, time_ms)
