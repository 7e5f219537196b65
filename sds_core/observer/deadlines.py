"""The deadlines of a channel, which fire in order as the channel's clock advances."""

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
    """Kind of a deadline.

    If several deadlines are equal, the one whose kind has the lowest number fires
    first.
    """

    ACKNOWLEDGEMENT = 0
    GAP_SETTLED = 1
    GAP_OVERDUE = 2
    EPISODE_EXPIRED = 3
    SEGMENTS_IDLE = 4


@native
@dataclass(slots=True)
class Deadlines:
    """A queue of deadlines.

    A deadline fires when the clock is later than the deadline, so an event at exactly
    the deadline is in time (docs/figures.md, 3). Deadlines cannot be removed. When a
    deadline fires, the handler must check whether the deadline still applies.
    """

    next_at: int = NEVER
    """The earliest deadline, Unix ms; `NEVER` if the queue is empty."""
    # The heap has two forms of entries. For a single deadline: (deadline, kind, key,
    # -1). For a list in `_lists`: (earliest deadline of the list, kind, `_BEFORE_KEYS`,
    # index of the list).
    _heap: list[tuple[int, Due, int, int]] = field(default_factory=list)
    # For each list: the kind, and pairs (deadline, key), the latest deadline first.
    _lists: list[tuple[Due, list[tuple[int, int]]]] = field(default_factory=list)

    def add(self, deadline_ms: int, due: Due, key: int) -> None:
        """Queue a deadline, Unix ms, of this kind for this key."""
        self._push((deadline_ms, due, key, -1))

    def add_all(self, due: Due, entries: list[tuple[int, int]]) -> None:
        """Queue many deadlines of one kind.

        If few of the deadlines pass soon, this is more efficient than calls of `add`.
        Each of `entries` is a pair: a deadline, Unix ms, and a key. The queue keeps the
        list `entries` and changes it.
        """
        # The sort ignores the keys. Many deadlines are equal, so a comparison of their
        # keys would take time. `_push_entries` puts the keys of equal deadlines in
        # order later.
        entries.sort(key=_deadline_of, reverse=True)
        self._lists.append((due, entries))
        self._push_list(len(self._lists) - 1)

    def _push_list(self, number: int) -> None:
        due, entries = self._lists[number]
        if entries:
            self._push((entries[-1][0], due, _BEFORE_KEYS, number))

    def _push_entries(self, number: int, deadline_ms: int) -> None:
        """Queue a list's entries with this deadline singly, later ones as a list."""
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
        """Remove and yield each deadline earlier than `clock_ms`, the earliest first.

        Such deadlines are also yielded if they are added during the iteration.
        """
        while self._heap and self._heap[0][0] < clock_ms:
            deadline_ms, due, key, number = heapq.heappop(self._heap)
            if number >= 0:
                self._push_entries(number, deadline_ms)
                continue
            self.next_at = self._heap[0][0] if self._heap else NEVER
            yield deadline_ms, due, key


def later(known_ms: int | None, time_ms: int) -> int:
    """The later of two times; if the first is None, the second."""
    return time_ms if known_ms is None else max(known_ms, time_ms)
