"""Converts payloads to the contents of SDS messages, and back.

Each segment is a separate SDS message, which is acknowledged and repaired like all
messages. The segments of a payload may be sent over several epochs of the rate limit.
"""

from __future__ import annotations

from math import inf

import msgspec

from sds_core.reliable_channel.events import (
    Event,
    Irretrievable,
    IrretrievableMessage,
    MessageReceived,
    Unusable,
    UnusableMessage,
)
from sds_core.reliable_channel.segmentation import (
    DroppedSet,
    Outcome,
    PayloadHashMismatch,
    Reassembler,
    SegmentationError,
    SegmentationOptions,
    Segmenter,
    SetTooLarge,
)
from sds_core.wire import HistoryEntry
from sds_core.wire.segment_header import read_segment_header

_Set = tuple[str, bytes]
"""Sender and payload hash."""


class StoredSegment(msgspec.Struct, array_like=True, frozen=True):
    """A segment of an incomplete payload, for a snapshot."""

    sender_id: str
    content: bytes
    added_ms: int


class Assembly:
    """Splits payloads, and reassembles them from segments.

    Content that is not a segment is a payload, because applications without
    segmentation, such as js-waku's, can be in the same channel.

    Args:
        options: Sizes and limits; if None, all payloads are sent and accepted unsplit.
    """

    def __init__(self, options: SegmentationOptions | None) -> None:
        self._options = options
        self._reassembler = None if options is None else Reassembler(options)
        self._stored: dict[_Set, list[StoredSegment]] = {}

    @property
    def next_ms(self) -> float:
        """When an incomplete payload is dropped, Unix ms; inf if none is incomplete."""
        if self._reassembler is None:
            return inf
        deadline_ms = self._reassembler.next_deadline_ms
        return inf if deadline_ms is None else deadline_ms

    def split(self, payload: bytes) -> list[bytes]:
        """Return the contents of the SDS messages of a payload.

        Raises:
            PayloadTooLarge: The payload needs too many segments.
        """
        if self._options is None:
            return [payload]
        return Segmenter(self._options).split(payload)

    def is_one_chunk(self, payload: bytes) -> bool:
        """Return whether a payload needs no segmentation."""
        options = self._options
        return options is None or len(payload) <= options.share_bytes

    def add(self, content: bytes, sender_id: str, now_ms: int) -> list[Event]:
        """Process the content of an SDS message; returns payloads and errors."""
        header = read_segment_header(content)
        if self._reassembler is None or header is None:
            return [MessageReceived(content, sender_id)]
        place = (sender_id, header.payload_hash)
        try:
            progress = self._reassembler.add(content, now_ms, sender_id)
        except SegmentationError as error:
            if isinstance(error, PayloadHashMismatch | SetTooLarge):
                self._stored.pop(place, None)
            return [UnusableMessage(Unusable.BAD_SEGMENT, str(error))]
        events = self._given_up(progress.dropped)
        if progress.outcome is Outcome.STORED:
            segment = StoredSegment(sender_id, content, now_ms)
            self._stored.setdefault(place, []).append(segment)
        if progress.payload is not None:
            self._stored.pop(place, None)
            events.append(MessageReceived(progress.payload, sender_id))
        return events

    def expire(self, now_ms: int) -> list[Event]:
        """Drop incomplete payloads whose last new segment arrived too long ago."""
        if self._reassembler is None or self.next_ms > now_ms:
            return []
        return self._given_up(self._reassembler.expire(now_ms))

    def touch(self, now_ms: int) -> None:
        """Restart the wait for segments, because none could arrive for some time."""
        replace = msgspec.structs.replace
        self.restore([replace(segment, added_ms=now_ms) for segment in self.state()])

    def state(self) -> list[StoredSegment]:
        """Return the segments of incomplete payloads, oldest first, for a snapshot."""
        segments = [segment for stored in self._stored.values() for segment in stored]
        return sorted(segments, key=lambda segment: segment.added_ms)

    def restore(self, segments: list[StoredSegment]) -> None:
        """Restore the result of `state`."""
        if self._options is None:
            return
        self._reassembler = Reassembler(self._options)
        self._stored.clear()
        for segment in segments:
            self.add(segment.content, segment.sender_id, segment.added_ms)

    def _given_up(self, dropped: tuple[DroppedSet, ...]) -> list[Event]:
        events: list[Event] = []
        for lost in dropped:
            self._stored.pop((lost.sender_id, lost.payload_hash), None)
            entry = HistoryEntry(lost.payload_hash.hex(), b"", lost.sender_id)
            events.append(IrretrievableMessage(entry, Irretrievable.CHUNKS))
        return events
