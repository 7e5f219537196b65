"""Schedules when a view checks its messages again."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from sds_core.native import native
from sds_core.observer.deadlines import NEVER


@native
@dataclass(slots=True)
class Awaited:
    """The next deadline of each message for which an event is expected.

    When a deadline passes, the event may already have happened.
    """

    _heap: list[tuple[int, int]] = field(default_factory=list)
    # The earliest deadline of each message; later deadlines of the message in the heap
    # are ignored.
    _due: dict[int, int] = field(default_factory=dict)
    _next_ms: int = NEVER

    def add(self, deadline_ms: int, key: int) -> None:
        """Schedule a check of the message with this key, after a deadline, Unix ms."""
        known_ms = self._due.get(key)
        if known_ms is None or deadline_ms < known_ms:
            self._due[key] = deadline_ms
            heapq.heappush(self._heap, (deadline_ms, key))
            self._next_ms = min(self._next_ms, deadline_ms)

    def forget(self, key: int) -> None:
        """Stop checking a message."""
        self._due.pop(key, None)

    def take(self, clock_ms: int) -> tuple[int, int] | None:
        """Remove and return the earliest passed deadline and its key, or None."""
        while self._next_ms < clock_ms:
            deadline_ms, key = heapq.heappop(self._heap)
            self._next_ms = self._heap[0][0] if self._heap else NEVER
            if self._due.get(key) == deadline_ms:
                del self._due[key]
                return deadline_ms, key
        return None
