"""Builds the frames that a participant broadcasts."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from random import Random

from sds_core.message_channel.checks import check_name
from sds_core.message_channel.errors import EmptyContent, FrameTooLarge, MessageIdTaken
from sds_core.message_channel.events import (
    Broadcast,
    Cause,
    Event,
    RepairRequested,
    Sent,
    Step,
)
from sds_core.message_channel.parts import Behaviour, Parts
from sds_core.wire import Frame, HistoryEntry, decode, encode

_ENTRY_OVERHEAD_BYTES = 16
"""Maximum bytes that an encoded history entry has in addition to its values."""

_NONCE_BYTES = 16


class FrameBuilder(Behaviour):
    """Builds the frames of one participant."""

    def build(
        self, message_id: str, lamport: int, content: bytes, now_ms: int
    ) -> tuple[bytes, list[HistoryEntry]]:
        """Return the bytes of a content or sync frame, and its repair requests.

        If the frame would be too long, the first entries of its causal history are
        omitted.

        Raises:
            FrameTooLarge: The frame would be too long even without a causal history.
                The call does not change the state.
        """
        requested = self._repairer.requests.due(now_ms)
        limit = self._profile.max_frame_bytes
        frame = Frame.build(
            self._profile.dialect,
            message_id=message_id,
            channel_id=self._channel_id,
            sender_id=self._participant_id,
            lamport=lamport,
            causal_history=self._causal_history(limit // 4),
            bloom_filter=self._bloom.to_wire(),
            repair_request=requested,
            content=content,
        )
        value = encode(frame)
        if len(value) > limit:
            bare = self.encoded(frame._replace(causal_history=()))
            history = self._causal_history(min(limit // 4, limit - len(bare)))
            value = encode(frame._replace(causal_history=history))
        self._lamport.value = lamport
        self._repairer.requests.carried(requested)
        return value, requested

    def _causal_history(self, room: int) -> list[HistoryEntry]:
        """Return the last entries of the log that fit into `room` bytes.

        Other participants choose the lengths of their ids and hints, so even a few
        entries may need more than `room` bytes.
        """
        entries = self._log.last(self._profile.causal_history_size)
        for fitting, entry in enumerate(reversed(entries)):
            room -= _ENTRY_OVERHEAD_BYTES + len(entry.retrieval_hint)
            room -= len(entry.message_id.encode()) + len(entry.sender_id.encode())
            if room < 0:
                return entries[len(entries) - fitting :]
        return entries

    def encoded(self, frame: Frame) -> bytes:
        """Return a frame's bytes, or raise `FrameTooLarge`."""
        value = encode(frame)
        limit = self._profile.max_frame_bytes
        if len(value) > limit:
            raise FrameTooLarge(len(value), limit)
        return value

    def unique_id(
        self, lamport: int, content: bytes, now_ms: int, random: Random
    ) -> str:
        """Return an id that no other message has (SDS, "Design Assumptions").

        After a restore from an older snapshot, a new message may have the content and
        Lamport timestamp of an earlier message. The id is a hash that also covers the
        time and a random value, so the ids of the two messages differ.
        """
        return hash_of_parts(
            self._channel_id.encode(),
            self._participant_id.encode(),
            lamport.to_bytes(8, "big"),
            content,
            now_ms.to_bytes(8, "big", signed=True),
            random.randbytes(_NONCE_BYTES),
        )


def hash_of_parts(*parts: bytes) -> str:
    """Return the hexadecimal SHA-256 of all parts, each preceded by its length."""
    hashed = sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big"))
        hashed.update(part)
    return hashed.hexdigest()


def requested_events(entries: list[HistoryEntry], carrier_id: str) -> Iterator[Event]:
    """If a frame carries repair requests, yield one event for all of them."""
    if entries:
        yield RepairRequested(tuple(entry.message_id for entry in entries), carrier_id)


class Sending(Behaviour):
    """Puts messages into frames, and adds content messages to the state."""

    def __init__(self, parts: Parts, frames: FrameBuilder, random: Random) -> None:
        super().__init__(parts)
        self._frames = frames
        self._random = random

    def send(self, content: bytes, now_ms: int, message_id: str | None) -> Step:
        """See `MessageChannel.send`."""
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

    def withdraw(self, message_id: str) -> bool:
        """See `MessageChannel.withdraw`."""
        if not self._outgoing.remove(message_id):
            return False
        self._log.withdraw(message_id)
        self._repairer.withdraw(message_id)
        return True

    def send_ephemeral(self, content: bytes) -> Step:
        """Put an ephemeral message into a frame; the state does not change."""
        if not content:
            raise EmptyContent
        # The id is random. An ephemeral message has no timestamp, so a hash would be
        # the same for all messages with the same content.
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
        """After a restart, restore a sent message of ours from its frame's bytes."""
        frame = decode(value)
        self._lamport.value = frame.lamport or 0
        self._repairer.requests.carried(frame.repair_request)
        self._add_own(frame.message_id, self._lamport.value, value, now_ms)

    def _add_own(
        self, message_id: str, lamport: int, value: bytes, now_ms: int
    ) -> list[Event]:
        events = list(self._outgoing.add(message_id, value, now_ms))
        self._log.add(lamport, HistoryEntry(message_id, b"", self._participant_id))
        self._bloom.add(message_id)
        self._repairer.retain(message_id, value, self._participant_id, now_ms)
        requests_wait = self._repairer.requests.has_waiting
        self._sync.content_sent(now_ms, requests_wait=requests_wait)
        return events
