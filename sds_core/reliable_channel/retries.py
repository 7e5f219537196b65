"""Decides when to send our unacknowledged messages again.

A message is sent again at a fixed interval, up to the maximum number of retries. The
interval begins when an attempt to send the message has succeeded or failed. So a
message that waits for the rate limit is not queued twice. Source: RELIABLE-CHANNEL-API,
"Message retries".
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

import msgspec

from sds_core.reliable_channel.options import ReliableChannelOptions


class Retry(msgspec.Struct, array_like=True):
    """Retry state of one message that is not acknowledged.

    Attributes:
        frame: The message's SDS frame, the same for each retry.
        due_ms: When the message will be sent again, Unix ms; None while the message is
            queued or being sent.
    """

    frame: bytes
    attempts: int = 0
    due_ms: int | None = None


class Retries:
    """Retry timers of our messages.

    If `Limits.retries` or `Limits.retries_bytes` is exceeded, the timer of the oldest
    message is dropped.
    """

    def __init__(self, options: ReliableChannelOptions) -> None:
        self._interval_ms = options.retry_interval_ms
        self._max_attempts = options.max_retry_attempts
        self._limits = options.limits
        self._retries: dict[str, Retry] = {}
        self._bytes = 0
        # Due times with SDS ids. An entry is outdated if its time differs from the
        # `Retry.due_ms` of its id.
        self._heap: list[tuple[int, str]] = []

    @property
    def next_ms(self) -> float:
        """When the next retry is due, Unix ms; inf if no retry is planned."""
        heap = self._heap
        while heap and not self._is_valid(*heap[0]):
            heappop(heap)
        return heap[0][0] if heap else inf

    def add(self, sds_id: str, frame: bytes) -> list[str]:
        """Add a message when it is first sent.

        Returns:
            The ids of the messages that are not sent again, because a limit is
            exceeded.
        """
        self._retries[sds_id] = Retry(frame)
        self._bytes += len(frame)
        dropped, limits = [], self._limits
        while len(self._retries) > limits.retries or self._bytes > limits.retries_bytes:
            oldest = next(iter(self._retries))
            self.stop(oldest)
            dropped.append(oldest)
        return dropped

    def frame(self, sds_id: str) -> bytes:
        """Return the frame of a tracked message."""
        return self._retries[sds_id].frame

    def sending_ended(self, sds_id: str, now_ms: int) -> None:
        """Start the interval until the next retry, after an attempt to send."""
        retry = self._retries.get(sds_id)
        if retry is not None:
            retry.due_ms = now_ms + self._interval_ms
            heappush(self._heap, (retry.due_ms, sds_id))

    def stop(self, sds_id: str) -> None:
        """Stop the retries of a message, if the message is tracked."""
        retry = self._retries.pop(sds_id, None)
        if retry is not None:
            self._bytes -= len(retry.frame)

    def take_due(self, now_ms: int) -> tuple[list[str], list[str]]:
        """Return the ids to send again now, and the ids that have no retries left.

        Call `take_due` only while the node is online, because each retry counts as an
        attempt even if it cannot be sent.
        """
        to_send: list[str] = []
        exhausted: list[str] = []
        while self.next_ms <= now_ms:
            _, sds_id = heappop(self._heap)
            retry = self._retries[sds_id]
            retry.due_ms = None
            if retry.attempts >= self._max_attempts:
                self.stop(sds_id)
                exhausted.append(sds_id)
            else:
                retry.attempts += 1
                to_send.append(sds_id)
        return to_send, exhausted

    def set_back(self, by_ms: int) -> None:
        """Move all retries back, because the clock was ahead before a restart."""
        for retry in self._retries.values():
            if retry.due_ms is not None:
                retry.due_ms -= by_ms
        self.restore(self._retries)

    def state(self) -> dict[str, Retry]:
        """Return the retry state of each message by id, for a snapshot."""
        return self._retries

    def restore(self, retries: dict[str, Retry]) -> None:
        """Restore the result of `state`."""
        self._retries = retries
        self._bytes = sum(len(retry.frame) for retry in retries.values())
        for sds_id, retry in retries.items():
            if retry.due_ms is not None:
                heappush(self._heap, (retry.due_ms, sds_id))

    def _is_valid(self, due_ms: int, sds_id: str) -> bool:
        retry = self._retries.get(sds_id)
        return retry is not None and retry.due_ms == due_ms
