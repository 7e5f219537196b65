"""The sending path: dispatches messages in order, if node and rate limit allow it.

In RELIABLE-CHANNEL-API, content passes the rate limiter before SDS makes frames of it.
Here, the rate limiter comes after SDS, because it must also count frames that do not
contain new content: retries, sync messages and repairs.

SDS makes the frame of new content only when the content is dispatched, because the
frame's causal history needs the final Waku hashes of the previous messages. A Waku
message also gets its time and its hash only when it is dispatched, because stores
refuse messages whose time is wrong by more than 20 s.
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
        sds_id: The SDS message id in the frame; for an ephemeral message, the message
            id that the application knows.
        payload: The encrypted frame.
    """

    cause: Cause
    sds_id: str
    payload: bytes


class Unframed(msgspec.Struct, array_like=True, frozen=True):
    """A chunk of one of our messages, for which SDS has not made a frame yet.

    Attributes:
        message_id: The message id that the application knows.
    """

    message_id: str
    chunk: int
    content: bytes


class OutwardState(msgspec.Struct, array_like=True):
    """State for a snapshot.

    Attributes:
        under_way: Frame and Waku hash of each unanswered dispatch, by the number of the
            dispatch.
    """

    first: list[Queued]
    again: list[Queued]
    under_way: dict[int, tuple[Queued, bytes]]
    number: int
    unframed: list[Unframed] = []


class Outward:
    """Queues and dispatches frames.

    Attributes:
        waits_for_budget: Whether the last call of `release` left frames in the queue
            because of the budget.
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
        """Return the number of frames and chunks that wait to be dispatched."""
        return len(self._first) + len(self._unframed) + len(self._again)

    def next_ms(self, now_ms: int) -> float:
        """When the budget next allows a waiting frame, Unix ms.

        The result is inf if the node is offline, if no frame waits, or if time alone
        does not change what the budget allows.
        """
        if not self.is_online or not len(self):
            return inf
        return self._budget.renewed_ms(now_ms)

    def has_room(self, frames: int, size_bytes: int) -> bool:
        """Return whether frames of this number and total size fit into the queue."""
        return (
            len(self) + frames <= self._limits.queue
            and self._bytes + size_bytes <= self._limits.queue_bytes
        )

    def allows(self, cause: Cause, now_ms: int) -> bool:
        """Return whether a new frame would be dispatched now.

        The call does not count the frame.
        """
        return (
            self.is_online
            and not len(self)
            and self._budget.allows(_URGENCY[cause], now_ms)
        )

    def has_unframed(self, message_id: str) -> bool:
        """Return whether queued chunks of the message have no frame yet."""
        return any(chunk.message_id == message_id for chunk in self._unframed)

    def wait(self, unframed: Unframed) -> None:
        """Queue a chunk. SDS makes its frame when the chunk is dispatched."""
        self._bytes += len(unframed.content)
        self._unframed.append(unframed)

    def encrypted(self, cause: Cause, sds_id: str, frame: bytes) -> Queued:
        """Encrypt a frame, and return it as an entry of the queue.

        Raises:
            EncryptionError: The frame cannot be encrypted.
        """
        return Queued(cause, sds_id, self._encryption.encrypt(frame))

    def submit(self, cause: Cause, sds_id: str, frame: bytes) -> str | None:
        """Encrypt and queue a frame.

        If the queue is full, remove the oldest retry or repair from it, and return the
        SDS id of the removed frame. Otherwise, return None.

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

    def withdraw(self, sds_id: str, cause: Cause = Cause.RETRY) -> None:
        """Remove a message's retries or repairs from the queue.

        When no more retries are needed, the message's repairs stay in the queue,
        because the participants that requested them still lack the message.
        """
        kept = [
            queued
            for queued in self._again
            if queued.sds_id != sds_id or queued.cause is not cause
        ]
        if len(kept) < len(self._again):
            self._again = deque(kept)
            self._bytes = self._waiting_bytes()

    def release(
        self, now_ms: int, frame: Callable[[Unframed], Queued | None]
    ) -> Iterator[Dispatch]:
        """Yield, in order, the dispatches that the node and the budget allow now.

        The function `frame` makes the frame of a chunk, or returns None if the chunk
        cannot be sent.
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
            KeyError: The dispatch is already answered, or unknown.
        """
        return self._under_way[number][0].sds_id

    def ended(self, number: int) -> tuple[Queued, bytes] | None:
        """Remove a dispatch that was answered; return its frame and its Waku hash.

        The result is None if the dispatch was removed before, or is unknown.
        """
        return self._under_way.pop(number, None)

    def requeue(self) -> None:
        """After a restart, queue the frames of unanswered dispatches again.

        Only content and retries are queued; other frames are dropped.
        """
        for queued, _ in reversed(self._under_way.values()):
            if queued.cause is Cause.CONTENT:
                self._bytes += len(queued.payload)
                self._first.appendleft(queued)
            elif queued.cause is Cause.RETRY:
                self._bytes += len(queued.payload)
                self._again.appendleft(queued)
        self._under_way.clear()

    def state(self) -> OutwardState:
        """Return the queue and the unanswered dispatches, for a snapshot."""
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
            # Stores need not keep ephemeral messages, because no participant queries
            # them.
            ephemeral=queued.cause is Cause.EPHEMERAL,
        )
        message_hash = message.hash_on(self._pubsub_topic)
        self._under_way[self._number] = (queued, message_hash)
        return Dispatch(self._number, queued.cause, message, message_hash)
