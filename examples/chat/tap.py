"""A tap that misses nothing, on a network of Waku messages that knows the truth."""

from __future__ import annotations

from typing import Any

from connectors.kafka.producer import TopicRecord, waku_headers
from sds_core.message_channel import Cause
from sds_core.message_channel.events import Received
from sds_core.simulation.log import Happening, Heartbeat, Sighting, Transmission
from sds_core.simulation.truth import Truth
from sds_core.waku import WakuMessage
from sds_core.wire import Frame, FrameKind, decode

_PARTITION = 0
_CAUSES = {FrameKind.SYNC: Cause.SYNC, FrameKind.EPHEMERAL: Cause.EPHEMERAL}


class WitnessTap:
    """Records everything that a network carries, and who really sent and received it.

    Args:
        name: Tap id, the header `observer`.
        network: Name of the network, for the truth.
    """

    def __init__(self, name: str, network: str) -> None:
        self._name = name
        self._seq = 0
        self._truth = Truth(network, seed=0)
        self._ids: set[str] = set()
        self._received: set[tuple[str, str]] = set()

    def sent(
        self, at_ms: int, by: str, message: WakuMessage, pubsub_topic: str
    ) -> TopicRecord:
        """Record a message at the moment of its sending.

        Args:
            at_ms: Unix ms.
            by: Participant that sends it, whatever the frame says.
            message: Its payload is a frame.
            pubsub_topic: Where it is relayed.

        Raises:
            sds_core.wire.UndecodableFrame: The payload is no frame.
        """
        frame = decode(message.payload).detached()
        message_hash = f"0x{message.hash_on(pubsub_topic).hex()}"
        transmission = Transmission(
            self._seq,
            at_ms,
            frame.channel_id,
            by,
            self._cause(frame, by),
            frame,
            message.payload,
            message_hash,
            message.timestamp_ns,
        )
        self._seq += 1
        self._truth.add(transmission)
        self._truth.add(Sighting(at_ms, self._name, self._seq, transmission))
        headers = waku_headers(message, "relay", pubsub_topic, message_hash)
        return TopicRecord(
            _PARTITION,
            at_ms,
            frame.channel_id.encode(),
            message.payload,
            (*headers, *self._headers()),
        )

    def reached(self, at_ms: int, participant: str, message: WakuMessage) -> None:
        """Note that a message reached a participant, from its sender or from a store.

        Raises:
            sds_core.wire.UndecodableFrame: The payload is no frame.
        """
        frame = decode(message.payload)
        place = (participant, frame.message_id)
        if frame.kind is FrameKind.CONTENT and place not in self._received:
            self._received.add(place)
            received = Received(frame.message_id, frame.sender_id)
            self._truth.add(Happening(at_ms, frame.channel_id, participant, received))

    def heartbeat(self, at_ms: int) -> TopicRecord:
        """Record that the tap is running; it moves the monitor's clock."""
        self._truth.add(Heartbeat(at_ms, self._name, self._seq))
        headers = (*self._headers(), ("kind", b"heartbeat"))
        return TopicRecord(_PARTITION, at_ms, None, b"", headers)

    def truth(self) -> dict[str, Any]:
        """Return what a correct monitor finds in the records (`Truth.document`)."""
        return self._truth.document()

    def _cause(self, frame: Frame, by: str) -> Cause:
        if frame.kind is not FrameKind.CONTENT:
            return _CAUSES[frame.kind]
        if frame.message_id not in self._ids:
            self._ids.add(frame.message_id)
            return Cause.CONTENT
        return Cause.RETRY if by == frame.sender_id else Cause.REPAIR

    def _headers(self) -> tuple[tuple[str, bytes], ...]:
        return (
            ("observer", self._name.encode()),
            ("seq", str(self._seq).encode()),
        )
