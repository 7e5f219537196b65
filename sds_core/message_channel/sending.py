"""How a participant's own messages get into its state (SDS, "Send Message")."""

from __future__ import annotations

from random import Random

from sds_core.message_channel.checks import check_name
from sds_core.message_channel.errors import EmptyContent, MessageIdTaken
from sds_core.message_channel.events import Broadcast, Cause, Event, Sent, Step
from sds_core.message_channel.framing import FrameBuilder, requested_events
from sds_core.message_channel.parts import Behaviour, Parts
from sds_core.wire import Frame, HistoryEntry, decode


class Sending(Behaviour):
    """Puts messages of the application into frames and into the participant's state.

    Args:
        parts: The participant's state.
        frames: Builds its frames.
        random: Source of the ids of messages.
    """

    def __init__(self, parts: Parts, frames: FrameBuilder, random: Random) -> None:
        super().__init__(parts)
        self._frames = frames
        self._random = random

    def send(self, content: bytes, now_ms: int, message_id: str | None) -> Step:
        """Put a content message into a frame; errors as in `MessageChannel.send`."""
        if not content:
            raise EmptyContent
        lamport = self._lamport.next(now_ms)
        if message_id is None:
            message_id = self._frames.unique_id(lamport, content, now_ms, self._random)
        elif self._log.knows(message_id) or self._incoming.knows(message_id):
            raise MessageIdTaken(message_id)
        else:
            check_name("message_id", message_id, self._profile.id_limit)
        value, requested = self._frames.build(message_id, lamport, content, now_ms)
        events: list[Event] = [Sent(message_id, lamport)]
        events += requested_events(requested, message_id)
        events += self._add_own(message_id, lamport, value, now_ms)
        return Step([Broadcast(Cause.CONTENT, message_id, value)], events)

    def send_ephemeral(self, content: bytes) -> Step:
        """Put an ephemeral message into a frame; the state stays as it is."""
        if not content:
            raise EmptyContent
        # Without a timestamp, a hash would be the same for the same content.
        message_id = f"{self._random.getrandbits(256):064x}"
        frame = Frame.build(
            self._profile.dialect,
            message_id=message_id,
            channel_id=self._channel_id,
            sender_id=self._participant_id,
            content=content,
        )
        value = self._frames.encoded(frame)
        return Step(
            [Broadcast(Cause.EPHEMERAL, message_id, value)], [Sent(message_id, None)]
        )

    def repeat(self, value: bytes, now_ms: int) -> None:
        """Add a message with the bytes that were broadcast before a restart."""
        frame = decode(value)
        self._lamport.value = frame.lamport or 0
        self._repairer.requests.carried(frame.repair_request)
        self._add_own(frame.message_id, self._lamport.value, value, now_ms)

    def _add_own(
        self, message_id: str, lamport: int, value: bytes, now_ms: int
    ) -> list[Event]:
        """Add a message of ours to all buffers."""
        events = list(self._outgoing.add(message_id, value, now_ms))
        self._log.add(lamport, HistoryEntry(message_id, b"", self._participant_id))
        self._bloom.add(message_id)
        self._repairer.retain(message_id, value, self._participant_id, now_ms)
        requests_wait = self._repairer.requests.has_waiting
        self._sync.content_sent(now_ms, requests_wait=requests_wait)
        return events
