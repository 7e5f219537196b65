"""Deadlines of one channel, fired in order by its event-time clock."""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from sds_core.native import native

NEVER = 1 << 62

_BEFORE_KEYS = -(1 << 63)
_deadline_of = itemgetter(0)


class Due(enum.IntEnum):
    """Kind of a deadline; of simultaneous deadlines, the lowest value fires first."""

    ACKNOWLEDGEMENT = 0
    GAP_SETTLED = 1
    GAP_OVERDUE = 2
    EPISODE_EXPIRED = 3
    SEGMENTS_IDLE = 4


@native
@dataclass(slots=True)
class Deadlines:
    """A queue of deadlines.

    A deadline fires when the clock has passed it: an event at exactly the deadline is
    in time (docs/figures.md, 3). Deadlines cannot be removed. A deadline may be
    obsolete when it fires, so its handler checks the entry.
    """

    next_at: int = NEVER
    """The earliest deadline, Unix ms; `NEVER` if none exists."""
    # The entry of one key is (deadline, kind, key, -1). The entry of a list is (the
    # list's earliest deadline, kind, `_BEFORE_KEYS`, the list's number).
    _heap: list[tuple[int, Due, int, int]] = field(default_factory=list)
    # A list has a kind, and pairs of deadline and key, latest deadline first.
    _lists: list[tuple[Due, list[tuple[int, int]]]] = field(default_factory=list)

    def add(self, deadline_ms: int, due: Due, key: int) -> None:
        """Queue a deadline, Unix ms, for the entry with this key."""
        self._push((deadline_ms, due, key, -1))

    def add_all(self, due: Due, entries: list[tuple[int, int]]) -> None:
        """Queue many deadlines of one kind; efficient if few of them pass soon.

        Each of `entries` has a deadline, Unix ms, and a key. Afterwards, the list
        `entries` belongs to the queue.
        """
        # Many entries have equal deadlines; their keys are sorted when the deadline
        # passes.
        entries.sort(key=_deadline_of, reverse=True)
        self._lists.append((due, entries))
        self._push_list(len(self._lists) - 1)

    def _push_list(self, number: int) -> None:
        due, entries = self._lists[number]
        if entries:
            self._push((entries[-1][0], due, _BEFORE_KEYS, number))

    def _push_entries(self, number: int, deadline_ms: int) -> None:
        """Queue a list's entries with this deadline, then queue the rest as a list."""
        due, entries = self._lists[number]
        while entries and entries[-1][0] == deadline_ms:
            _, key = entries.pop()
            self._push((deadline_ms, due, key, -1))
        self._push_list(number)

    def _push(self, one: tuple[int, Due, int, int]) -> None:
        heapq.heappush(self._heap, one)
        if one[0] < self.next_at:
            self.next_at = one[0]

    def passed(self, clock_ms: int) -> Iterator[tuple[int, Due, int]]:
        """Removes and yields each deadline before the clock, in order.

        The result includes deadlines that are added during the iteration.
        """
        while self._heap and self._heap[0][0] < clock_ms:
            deadline_ms, due, key, number = heapq.heappop(self._heap)
            if number >= 0:
                self._push_entries(number, deadline_ms)
                continue
            self.next_at = self._heap[0][0] if self._heap else NEVER
            yield deadline_ms, due, key


def later(known_ms: int | None, time_ms: int) -> int:
    """The later of two times; the second if the first is None."""
    return time_ms if known_ms is None else max(known_ms, time_ms)
