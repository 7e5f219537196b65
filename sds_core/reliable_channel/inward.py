"""The way in: decrypts a Waku message, and gives its frame to SDS.

SDS delivers payloads or their segments in causal order. Ephemeral messages have no
order, and SDS remembers none of them. So this module recognises their copies, by the
Waku hash, because deployed libraries give equal contents the same SDS id.
"""

from __future__ import annotations

from collections.abc import Sequence

from sds_core import message_channel as sds
from sds_core.reliable_channel.encryption import EncryptionError
from sds_core.reliable_channel.events import Unusable, UnusableMessage
from sds_core.reliable_channel.inputs import Arrived
from sds_core.reliable_channel.tape import TapedEncryption
from sds_core.wire import Frame, FrameKind, UndecodableFrame, decode


class Inward:
    """Reads messages of the content topic.

    Args:
        participant: The SDS participant.
        content_topic: Messages of other topics are ignored.
        pubsub_topic: Topic on which the node relays them.
        encryption: Decrypts every frame.
        limit: Number of ephemeral messages whose copies are recognised; the oldest is
            dropped.
    """

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
        # Their Waku hashes, in order of arrival.
        self._ephemerals: dict[bytes, None] = {}

    def receive(
        self, arrived: Arrived, now_ms: int
    ) -> tuple[Sequence[sds.Event], UnusableMessage | None]:
        """Give a message to SDS; returns its events, or why it is unusable."""
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
        """Return whether a message is received without waiting for others.

        The frame decides. The Waku message's flag does not, because repairs have it
        too.
        """
        frame = self._read(arrived)
        return frame is not None and frame.kind is FrameKind.EPHEMERAL

    def is_of_channel(self, arrived: Arrived) -> bool:
        """Return whether a message of another participant names a causal history.

        Only such a message names the messages before it, so that a query on connect can
        stop.
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
        """Return the frame of a message; None if there is none for this channel."""
        if arrived.message.content_topic != self._content_topic:
            return None
        try:
            return decode(self._encryption.decrypt(arrived.message.payload))
        except (EncryptionError, UndecodableFrame):
            return None

    def _is_copy(self, arrived: Arrived) -> bool:
        """Return whether an ephemeral message has arrived before, and remember it."""
        # The hash is computed here, because not every copy arrives with a hash.
        message_hash = arrived.message.hash_on(self._pubsub_topic)
        if message_hash in self._ephemerals:
            return True
        self._ephemerals[message_hash] = None
        if len(self._ephemerals) > self._limit:
            del self._ephemerals[next(iter(self._ephemerals))]
        return False
