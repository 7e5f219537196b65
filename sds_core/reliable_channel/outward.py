"""The sending path: dispatches messages in order, when node and rate limit allow it.

In the document, the rate limiter is above SDS. Here, it is below SDS, because SDS
creates retries, sync messages and repairs, which use the same budget. New content gets
its frame only when it is dispatched, because the frame's causal history needs the final
hashes of the previous messages. A message also gets its time and its Waku hash when it
is dispatched, because stores refuse messages whose time is wrong by more than 20 s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from math import inf

import msgspec

from sds_core.message_channel import Cause
from sds_core.reliable_channel.options import ReliableChannelOptions
from sds_core.reliable_channel.outputs import Dispatch
from sds_core.reliable_channel.rate_limit import Budget, Urgency
from sds_core.reliable_channel.tape import TapedEncryption
from sds_core.waku import WakuMessage

_NS_PER_MS = 1_000_000

_URGENCY = {
    Cause.CONTENT: Urgency.FIRST,
    Cause.RETRY: Urgency.AGAIN,
    Cause.REPAIR: Urgency.AGAIN,
    Cause.SYNC: Urgency.AGAIN,
    Cause.EPHEMERAL: Urgency.DROPPABLE,
}


class Queued(msgspec.Struct, array_like=True, frozen=True):
    """A frame that waits to be dispatched.

    Attributes:
        sds_id: The SDS message id in the frame.
        payload: The encrypted frame.
    """

    cause: Cause
    sds_id: str
    payload: bytes


class Unframed(msgspec.Struct, array_like=True, frozen=True):
    """A chunk that has no frame yet. It is a part of one of our messages.

    Attributes:
        message_id: The id that the application knows.
    """

    message_id: str
    chunk: int
    content: bytes


class OutwardState(msgspec.Struct, array_like=True):
    """State for a snapshot. `under_way` maps numbers to unanswered dispatches."""

    first: list[Queued]
    again: list[Queued]
    under_way: dict[int, tuple[Queued, bytes]]
    number: int
    unframed: list[Unframed] = []


class Outward:
    """Queues and dispatches frames.

    Attributes:
        waits_for_budget: Whether the last call of `release` left frames that wait for
            the budget.
    """

    def __init__(
        self,
        content_topic: str,
        pubsub_topic: str,
        encryption: TapedEncryption,
        budget: Budget,
        options: ReliableChannelOptions,
    ) -> None:
        self._content_topic = content_topic
        self._pubsub_topic = pubsub_topic
        self._encryption = encryption
        self._budget = budget
        self._limits = options.limits
        self._meta = options.meta
        self._first: deque[Queued] = deque()
        self._unframed: deque[Unframed] = deque()
        self._again: deque[Queued] = deque()
        self._bytes = 0
        self._under_way: dict[int, tuple[Queued, bytes]] = {}
        self._number = 0
        self.is_online = False
        self.waits_for_budget = False

    def __len__(self) -> int:
        """Return the number of frames and chunks that wait."""
        return len(self._first) + len(self._unframed) + len(self._again)

    def next_ms(self, now_ms: int) -> float:
        """When the budget next allows a waiting frame, Unix ms; inf if never."""
        if not self.is_online or not len(self):
            return inf
        return self._budget.renewed_ms(now_ms)

    def has_room(self, frames: int, size_bytes: int) -> bool:
        """Return whether the queue has room for these further frames."""
        return (
            len(self) + frames <= self._limits.queue
            and self._bytes + size_bytes <= self._limits.queue_bytes
        )

    def allows(self, cause: Cause, now_ms: int) -> bool:
        """Return whether a frame would be dispatched now. This call uses no budget."""
        return (
            self.is_online
            and not len(self)
            and self._budget.allows(_URGENCY[cause], now_ms)
        )

    def has_unframed(self, message_id: str) -> bool:
        """Return whether a message has chunks that wait for their frames."""
        return any(chunk.message_id == message_id for chunk in self._unframed)

    def wait(self, unframed: Unframed) -> None:
        """Queue a chunk, which gets its frame when it is dispatched."""
        self._bytes += len(unframed.content)
        self._unframed.append(unframed)

    def encrypted(self, cause: Cause, sds_id: str, frame: bytes) -> Queued:
        """Encrypt a frame, and return it in the form for dispatch.

        Raises:
            EncryptionError: The frame cannot be encrypted.
        """
        return Queued(cause, sds_id, self._encryption.encrypt(frame))

    def submit(self, cause: Cause, sds_id: str, frame: bytes) -> str | None:
        """Encrypt and queue a frame.

        If the queue is full, drop the oldest waiting retry or repair, and return its
        SDS id.

        Raises:
            EncryptionError: The frame cannot be encrypted.
        """
        queued = self.encrypted(cause, sds_id, frame)
        dropped = None
        if not self.has_room(1, len(queued.payload)) and self._again:
            old = self._again.popleft()
            self._bytes -= len(old.payload)
            dropped = old.sds_id
        self._bytes += len(queued.payload)
        queue = self._first if _URGENCY[cause] is not Urgency.AGAIN else self._again
        queue.append(queued)
        return dropped

    def withdraw(self, sds_id: str) -> None:
        """Remove the waiting retries of a message that needs no more retries.

        A repair is kept, because the participant that requested it still lacks the
        message.
        """
        kept = [
            queued
            for queued in self._again
            if queued.sds_id != sds_id or queued.cause is not Cause.RETRY
        ]
        if len(kept) < len(self._again):
            self._again = deque(kept)
            self._bytes = self._waiting_bytes()

    def release(
        self, now_ms: int, frame: Callable[[Unframed], Queued | None]
    ) -> Iterator[Dispatch]:
        """Yield the dispatches that node and budget allow now, in order.

        `frame` makes the frame of a chunk; it returns None if the chunk cannot be sent.
        """
        self.waits_for_budget = False
        while self.is_online and len(self):
            urgency = self._next_urgency()
            if not self._budget.allows(urgency, now_ms):
                self.waits_for_budget = True
                return
            queued = self._next(frame)
            if queued is not None:
                self._budget.take(urgency, now_ms)
                yield self._dispatch(queued, now_ms)

    def _next_urgency(self) -> Urgency:
        if self._first:
            return _URGENCY[self._first[0].cause]
        return Urgency.FIRST if self._unframed else Urgency.AGAIN

    def _next(self, frame: Callable[[Unframed], Queued | None]) -> Queued | None:
        if self._first or not self._unframed:
            queued = (self._first or self._again).popleft()
            self._bytes -= len(queued.payload)
            return queued
        unframed = self._unframed.popleft()
        self._bytes -= len(unframed.content)
        return frame(unframed)

    def sds_id(self, number: int) -> str:
        """Return the SDS id of the frame in the dispatch with this number.

        Raises:
            KeyError: The dispatch was answered already.
        """
        return self._under_way[number][0].sds_id

    def ended(self, number: int) -> tuple[Queued, bytes] | None:
        """Remove and return an answered dispatch: the frame and the message's hash."""
        return self._under_way.pop(number, None)

    def requeue(self) -> None:
        """After a restart, queue content and retries of unanswered dispatches again."""
        for queued, _ in reversed(self._under_way.values()):
            if queued.cause is Cause.CONTENT:
                self._bytes += len(queued.payload)
                self._first.appendleft(queued)
            elif queued.cause is Cause.RETRY:
                self._bytes += len(queued.payload)
                self._again.appendleft(queued)
        self._under_way.clear()

    def state(self) -> OutwardState:
        """Return the waiting and the dispatched frames, for a snapshot."""
        return OutwardState(
            list(self._first),
            list(self._again),
            dict(self._under_way),
            self._number,
            list(self._unframed),
        )

    def restore(self, state: OutwardState) -> None:
        """Restore the result of `state`."""
        self._first.extend(state.first)
        self._again.extend(state.again)
        self._under_way = dict(state.under_way)
        self._number = state.number
        self._unframed.extend(state.unframed)
        self._bytes = self._waiting_bytes()

    def _waiting_bytes(self) -> int:
        framed = sum(len(queued.payload) for queued in (*self._first, *self._again))
        return framed + sum(len(chunk.content) for chunk in self._unframed)

    def _dispatch(self, queued: Queued, now_ms: int) -> Dispatch:
        self._number += 1
        message = WakuMessage(
            queued.payload,
            self._content_topic,
            now_ms * _NS_PER_MS,
            meta=self._meta,
            # Stores need not keep ephemeral messages, because no participant fetches
            # them.
            ephemeral=queued.cause is Cause.EPHEMERAL,
        )
        message_hash = message.hash_on(self._pubsub_topic)
        self._under_way[self._number] = (queued, message_hash)
        return Dispatch(self._number, queued.cause, message, message_hash)
