"""Converts payloads to contents of SDS messages, and contents back to payloads.

Each segment of a payload is a separate SDS message, which is acknowledged and repaired
like any other message. If the rate limit is reached, a payload's remaining segments are
sent in later epochs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
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
    Finished,
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
"""Key of a segmented payload: the sender's id, and the hash of the whole payload."""


class StoredSegment(msgspec.Struct, array_like=True, frozen=True):
    """A segment of an incomplete payload, as a snapshot stores it."""

    sender_id: str
    content: bytes
    added_ms: int


class Assembly:
    """Splits payloads, and reassembles them from segments.

    The channel can have participants that do not split payloads, such as js-waku.
    Therefore, content that is not a segment is processed as a whole payload.

    Args:
        options: Sizes and limits of segmentation. If None, payloads are neither split
            nor reassembled.
    """

    def __init__(self, options: SegmentationOptions | None) -> None:
        self._options = options
        self._reassembler = None if options is None else Reassembler(options)
        self._stored: dict[_Set, list[StoredSegment]] = {}

    @property
    def next_ms(self) -> float:
        """When the next incomplete payload is dropped, Unix ms; inf if none is held."""
        if self._reassembler is None:
            return inf
        deadline_ms = self._reassembler.next_deadline_ms
        return inf if deadline_ms is None else deadline_ms

    def split(self, payload: bytes) -> list[bytes]:
        """Split a payload, and return the contents of the SDS messages that it needs.

        Raises:
            PayloadTooLarge: The payload needs too many segments.
        """
        if self._options is None:
            return [payload]
        return Segmenter(self._options).split(payload)

    def is_one_chunk(self, payload: bytes) -> bool:
        """Return whether a payload fits into one message."""
        options = self._options
        return options is None or len(payload) <= options.share_bytes

    def add(self, content: bytes, sender_id: str, now_ms: int) -> list[Event]:
        """Process an SDS message's content, and return the events that it causes."""
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
        """Drop incomplete payloads that got no new segment for `idle_timeout_ms`."""
        if self._reassembler is None or self.next_ms > now_ms:
            return []
        return self._given_up(self._reassembler.expire(now_ms))

    def touch(self, now_ms: int) -> None:
        """Restart the timeouts of payloads whose segments may still arrive.

        Call this when the node is online again, because no segment could arrive while
        it was offline, or while the process was off.
        """
        replace = msgspec.structs.replace
        self.restore(
            [replace(segment, added_ms=now_ms) for segment in self.state()],
            [dataclasses.replace(one, ended_ms=now_ms) for one in self.finished],
        )

    def state(self) -> list[StoredSegment]:
        """Return the segments of incomplete payloads for a snapshot, oldest first."""
        segments = [segment for stored in self._stored.values() for segment in stored]
        return sorted(segments, key=lambda segment: segment.added_ms)

    @property
    def finished(self) -> list[Finished]:
        """Complete payloads whose other segments may still arrive, for a snapshot."""
        return [] if self._reassembler is None else self._reassembler.finished

    def restore(
        self, segments: Iterable[StoredSegment], finished: Iterable[Finished]
    ) -> list[Event]:
        """Restore the results of `state` and `finished`.

        Returns:
            Events of the incomplete payloads that exceed the options; empty if the
            options have not changed.
        """
        if self._options is None:
            return _irretrievable(
                (segment.sender_id, header.payload_hash)
                for segment in segments
                if (header := read_segment_header(segment.content)) is not None
            )
        self._reassembler = Reassembler(self._options, finished)
        self._stored.clear()
        return [
            event
            for segment in segments
            for event in self.add(segment.content, segment.sender_id, segment.added_ms)
        ]

    def _given_up(self, dropped: Iterable[DroppedSet]) -> list[Event]:
        lost = [(one.sender_id, one.payload_hash) for one in dropped]
        for place in lost:
            self._stored.pop(place, None)
        return _irretrievable(lost)


def _irretrievable(lost: Iterable[_Set]) -> list[Event]:
    """Return one event for each incomplete payload, whose key may occur repeatedly."""
    return [
        IrretrievableMessage(
            HistoryEntry(payload_hash.hex(), b"", sender_id), Irretrievable.CHUNKS
        )
        for sender_id, payload_hash in dict.fromkeys(lost)
    ]
