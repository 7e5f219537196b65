"""The receiving path: decrypts Waku messages and passes their frames to SDS.

SDS delivers payloads, or their segments, in causal order. SDS does not remember
ephemeral messages, so this module detects whether an ephemeral message arrives again.
It compares Waku hashes instead of SDS ids, because deployed libraries give two
ephemeral messages the same SDS id if their contents are equal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import inf

from sds_core import message_channel as sds
from sds_core.reliable_channel.encryption import EncryptionError
from sds_core.reliable_channel.events import Unusable, UnusableMessage
from sds_core.reliable_channel.inputs import Arrived
from sds_core.reliable_channel.options import ReliableChannelOptions
from sds_core.reliable_channel.tape import TapedEncryption
from sds_core.wire import Frame, FrameKind, UndecodableFrame, decode


class Intake:
    """A queue of messages from the network, which is emptied at most once per interval.

    The interval is `process_task_min_elapse_ms` (RELIABLE-CHANNEL-API, "Performance
    considerations").

    Attributes:
        processed_ms: When the queue was last emptied, Unix ms; -inf if never.
    """

    def __init__(self, options: ReliableChannelOptions) -> None:
        self._min_elapse_ms = options.process_task_min_elapse_ms
        self._limits = options.limits
        self._queue: deque[Arrived] = deque()
        self._bytes = 0
        self.processed_ms: float = -inf

    @property
    def next_ms(self) -> float:
        """When the queue may be emptied next, Unix ms; inf if the queue is empty."""
        return self.processed_ms + self._min_elapse_ms if self._queue else inf

    def add(self, arrived: Arrived) -> int:
        """Add a message. If a limit is exceeded, drop the oldest messages.

        Returns:
            Number of dropped messages.
        """
        self._queue.append(arrived)
        self._bytes += len(arrived.message.payload)
        dropped, limits = 0, self._limits
        while len(self._queue) > limits.intake or self._bytes > limits.intake_bytes:
            self._pop()
            dropped += 1
        return dropped

    def take(self, now_ms: int) -> list[Arrived]:
        """If the interval has passed, empty the queue and return its messages."""
        if self.next_ms > now_ms:
            return []
        self.processed_ms = now_ms
        return [self._pop() for _ in range(len(self._queue))]

    def state(self) -> list[Arrived]:
        """Return all queued messages, for a snapshot."""
        return list(self._queue)

    def restore(self, queue: list[Arrived]) -> None:
        """Restore the result of `state`."""
        for arrived in queue:
            self.add(arrived)

    def _pop(self) -> Arrived:
        arrived = self._queue.popleft()
        self._bytes -= len(arrived.message.payload)
        return arrived


class Inward:
    """Reads messages of the content topic. `limit` is `Limits.ephemerals`."""

    def __init__(
        self,
        participant: sds.MessageChannel,
        content_topic: str,
        pubsub_topic: str,
        encryption: TapedEncryption,
        limit: int,
    ) -> None:
        self._participant = participant
        self._content_topic = content_topic
        self._pubsub_topic = pubsub_topic
        self._encryption = encryption
        self._limit = limit
        # Waku hashes of ephemeral messages, in order of arrival.
        self._ephemerals: dict[bytes, None] = {}

    def receive(
        self, arrived: Arrived, now_ms: int
    ) -> tuple[Sequence[sds.Event], UnusableMessage | None]:
        """Pass a message to SDS; return SDS events, or why the message is unusable."""
        if arrived.message.content_topic != self._content_topic:
            return (), None
        try:
            frame = self._encryption.decrypt(arrived.message.payload)
        except EncryptionError as error:
            return (), UnusableMessage(Unusable.UNDECRYPTABLE, str(error))
        step = self._participant.receive(
            frame, now_ms, retrieval_hint=arrived.message_hash
        )
        for event in step.events:
            if isinstance(event, sds.Ignored) and event.reason in (
                sds.IgnoredReason.MALFORMED,
                sds.IgnoredReason.TOO_LARGE,
            ):
                return (), UnusableMessage(Unusable.BAD_FRAME, event.detail)
            if isinstance(event, sds.EphemeralReceived) and self._is_copy(arrived):
                return (), None
        return step.events, None

    def is_ephemeral(self, arrived: Arrived) -> bool:
        """Return whether a message is ephemeral, and thus does not wait in `Intake`.

        The message's frame shows the kind. The flag `ephemeral` of the Waku message is
        not used, because other libraries also set this flag in repairs.
        """
        frame = self._read(arrived)
        return frame is not None and frame.kind is FrameKind.EPHEMERAL

    def is_of_channel(self, arrived: Arrived) -> bool:
        """Return whether a query on connect stops at this message.

        It stops if another participant of this channel sent the message, and the
        message has a causal history. From this history, SDS learns which earlier
        messages are missing.
        """
        frame = self._read(arrived)
        return (
            frame is not None
            and frame.channel_id == self._participant.channel_id
            and frame.sender_id != self._participant.participant_id
            and bool(frame.causal_history)
        )

    def state(self) -> list[bytes]:
        """Return the hashes of received ephemeral messages, for a snapshot."""
        return list(self._ephemerals)

    def restore(self, ephemerals: list[bytes]) -> None:
        """Restore the result of `state`."""
        self._ephemerals = dict.fromkeys(ephemerals)

    def _read(self, arrived: Arrived) -> Frame | None:
        if arrived.message.content_topic != self._content_topic:
            return None
        try:
            return decode(self._encryption.decrypt(arrived.message.payload))
        except (EncryptionError, UndecodableFrame):
            return None

    def _is_copy(self, arrived: Arrived) -> bool:
        """Return whether an ephemeral message arrived before, and remember its hash."""
        # The hash is computed here, because not every copy arrives with a hash.
        message_hash = arrived.message.hash_on(self._pubsub_topic)
        if message_hash in self._ephemerals:
            return True
        self._ephemerals[message_hash] = None
        if len(self._ephemerals) > self._limit:
            del self._ephemerals[next(iter(self._ephemerals))]
        return False
