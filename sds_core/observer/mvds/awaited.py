"""Schedules the next check of each message of a view."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from sds_core.native import native
from sds_core.observer.deadlines import NEVER


@native
@dataclass(slots=True)
class Awaited:
    """A queue with the next deadline of each message that awaits a record.

    If the record arrives, the deadline stays in the queue. When a deadline passes, the
    caller must check whether the message still awaits a record.
    """

    _heap: list[tuple[int, int]] = field(default_factory=list)
    # The earliest deadline of each message. `_heap` may also have later deadlines of
    # the same message; `take` ignores them.
    _due: dict[int, int] = field(default_factory=dict)
    _next_ms: int = NEVER

    def add(self, deadline_ms: int, key: int) -> None:
        """Check a message again when the clock passes `deadline_ms`, Unix ms."""
        known_ms = self._due.get(key)
        if known_ms is None or deadline_ms < known_ms:
            self._due[key] = deadline_ms
            heapq.heappush(self._heap, (deadline_ms, key))
            self._next_ms = min(self._next_ms, deadline_ms)

    def forget(self, key: int) -> None:
        """Stop checking a message."""
        self._due.pop(key, None)

    def take(self, clock_ms: int) -> tuple[int, int] | None:
        """Remove the earliest deadline that has passed.

        Returns:
            The deadline, Unix ms, and the key of its message; None if no deadline has
            passed.
        """
        while self._next_ms < clock_ms:
            deadline_ms, key = heapq.heappop(self._heap)
            self._next_ms = self._heap[0][0] if self._heap else NEVER
            if self._due.get(key) == deadline_ms:
                del self._due[key]
                return deadline_ms, key
        return None
