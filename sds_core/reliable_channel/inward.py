"""The way in: a Waku message is decrypted, and its frame goes to SDS.

What SDS delivers, in causal order, is a payload or a segment of one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sds_core import message_channel as sds
from sds_core.reliable_channel.encryption import EncryptionError
from sds_core.reliable_channel.events import (
    Unusable,
    UnusableMessage,
)
from sds_core.reliable_channel.inputs import Arrived
from sds_core.reliable_channel.tape import TapedEncryption
from sds_core.wire import UndecodableFrame, decode


class Inward:
    """Reads messages of the content topic.

    Args:
        participant: The SDS participant.
        content_topic: Messages of other topics are ignored.
        encryption: Decrypts every frame.
    """

    __slots__ = ("_content_topic", "_encryption", "_participant")

    def __init__(
        self,
        participant: sds.MessageChannel,
        content_topic: str,
        encryption: TapedEncryption,
    ) -> None:
        self._participant = participant
        self._content_topic = content_topic
        self._encryption = encryption

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
        return step.events, None

    def is_of_channel(self, arrived: Arrived) -> bool:
        """Return whether a message of another participant names a causal history.

        Only then does it say what came before it, and a query on connect can stop.
        """
        if arrived.message.content_topic != self._content_topic:
            return False
        try:
            frame = decode(self._encryption.decrypt(arrived.message.payload))
        except (EncryptionError, UndecodableFrame):
            return False
        return (
            frame.channel_id == self._participant.channel_id
            and frame.sender_id != self._participant.participant_id
            and bool(frame.causal_history)
        )
