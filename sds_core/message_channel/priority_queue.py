"""A priority queue whose entries can be removed and changed (SDS-R guide).

"Performance Recommendations": "Use priority queues for T_req/T_resp ordered buffers".
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Priority = TypeVar("Priority", int, tuple[bool, int])

_MOST_OUTDATED = 64
"""Pairs beyond twice the entries after which the heap is made anew."""


class PriorityQueue(Generic[Priority]):
    """Ids by priority, the least first; equal priorities by id.

    Every call takes logarithmic time in the number of entries, averaged over calls. A
    removed or changed entry stays in the heap until it is at the top, or until outdated
    pairs outnumber the entries.
    """

    __slots__ = ("_heap", "_priorities")

    def __init__(self) -> None:
        self._priorities: dict[str, Priority] = {}
        self._heap: list[tuple[Priority, str]] = []

    def __contains__(self, message_id: str) -> bool:
        """Return whether an id is in."""
        return message_id in self._priorities

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._priorities)

    def get(self, message_id: str) -> Priority | None:
        """Return the priority of an id; None if it is not in."""
        return self._priorities.get(message_id)

    def put(self, message_id: str, priority: Priority) -> None:
        """Add an id, or change its priority."""
        self._priorities[message_id] = priority
        heappush(self._heap, (priority, message_id))
        if len(self._heap) > 2 * len(self._priorities) + _MOST_OUTDATED:
            self._heap = [(one, name) for name, one in self._priorities.items()]
            heapify(self._heap)

    def remove(self, message_id: str) -> bool:
        """Remove an id; return whether it was in."""
        return self._priorities.pop(message_id, None) is not None

    def first(self) -> tuple[Priority, str] | None:
        """Return the least priority and its id; None if the queue is empty."""
        heap = self._heap
        while heap:
            priority, message_id = heap[0]
            if self._priorities.get(message_id) == priority:
                return heap[0]
            heappop(heap)
        return None

    def pop(self) -> str:
        """Remove and return the id with the least priority.

        Raises:
            IndexError: The queue is empty.
        """
        while True:
            priority, message_id = heappop(self._heap)
            if self._priorities.get(message_id) == priority:
                del self._priorities[message_id]
                return message_id

    def pop_up_to(self, last: Priority) -> Iterator[str]:
        """Remove and yield the ids with at most this priority, the least first."""
        while (first := self.first()) is not None and first[0] <= last:
            del self._priorities[first[1]]
            yield first[1]

    def smallest_up_to(self, last: Priority, count: int) -> list[str]:
        """Return up to `count` ids with at most this priority, the least first."""
        found: list[tuple[Priority, str]] = []
        while len(found) < count:
            first = self.first()
            if first is None or first[0] > last:
                break
            found.append(heappop(self._heap))
            # An id that was removed and put in again may have two equal pairs.
            while self._heap and self._heap[0] == first:
                heappop(self._heap)
        for pair in found:
            heappush(self._heap, pair)
        return [message_id for _, message_id in found]

    def items(self) -> dict[str, Priority]:
        """Return the priority of each id, in the order of their first `put`."""
        return dict(self._priorities)
