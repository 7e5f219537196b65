"""Messages from the network that wait until they are processed together.

Document, "Performance considerations": the SDS process task runs at most once in
`process_task_min_elapse_ms`.
"""

from __future__ import annotations

from collections import deque
from math import inf

from sds_core.reliable_channel.inputs import Arrived


class Intake:
    """A queue that is emptied at most once in an interval.

    Args:
        min_elapse_ms: `process_task_min_elapse_ms`.
        limit: Number of messages; the oldest is dropped, and SDS then finds it missing.
        limit_bytes: Total size of their payloads.

    Attributes:
        processed_ms: When the queue was processed last, Unix ms; -inf if never.
    """

    def __init__(self, min_elapse_ms: int, limit: int, limit_bytes: int) -> None:
        self._min_elapse_ms = min_elapse_ms
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._queue: deque[Arrived] = deque()
        self._bytes = 0
        self.processed_ms: float = -inf

    @property
    def next_ms(self) -> float:
        """When the queue is processed next, Unix ms; inf if it is empty."""
        return self.processed_ms + self._min_elapse_ms if self._queue else inf

    def add(self, arrived: Arrived) -> int:
        """Add a message; returns how many the limits drop."""
        self._queue.append(arrived)
        self._bytes += len(arrived.message.payload)
        dropped = 0
        while len(self._queue) > self._limit or self._bytes > self._limit_bytes:
            self._pop()
            dropped += 1
        return dropped

    def take(self, now_ms: int) -> list[Arrived]:
        """Return all messages in order of arrival, if the interval has passed."""
        if self.next_ms > now_ms:
            return []
        self.processed_ms = now_ms
        return [self._pop() for _ in range(len(self._queue))]

    def state(self) -> list[Arrived]:
        """Return all messages, for a snapshot."""
        return list(self._queue)

    def restore(self, queue: list[Arrived]) -> None:
        """Restore the result of `state`."""
        for arrived in queue:
            self.add(arrived)

    def _pop(self) -> Arrived:
        arrived = self._queue.popleft()
        self._bytes -= len(arrived.message.payload)
        return arrived
