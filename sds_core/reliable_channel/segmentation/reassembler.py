"""Reassembles payloads from segments that arrive in any order.

By default, the limits on incomplete payloads are those of nim-segmentation. Repeated
segments do not extend the time after which an incomplete payload is dropped.

If a payload arrives twice, the reassembler returns it twice. SDS already drops repeated
messages, so in this case, the application has sent the payload twice. If a segment of
the second copy arrives before the first copy is complete, the segment counts as a
segment of the first copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sds_core.reliable_channel.segmentation.errors import (
    NotASegment,
    PayloadHashMismatch,
    SegmentTooLarge,
    SetTooLarge,
)
from sds_core.reliable_channel.segmentation.options import SegmentationOptions
from sds_core.reliable_channel.segmentation.segment_set import SegmentSet, Slot
from sds_core.wire.segment_header import (
    SegmentHeader,
    SegmentLayout,
    payload_hash,
    read_segment_header,
)


class Outcome(StrEnum):
    """What a segment changed."""

    STORED = "stored"
    COMPLETE = "complete"
    DUPLICATE = "duplicate"
    """The segment was ignored, because a segment with this index is already held."""
    LATE = "late"
    """The segment was ignored, because its payload is already complete."""


class DropReason(StrEnum):
    """Why an incomplete payload was dropped."""

    EXPIRED = "expired"
    EVICTED = "evicted"


@dataclass(frozen=True, slots=True)
class DroppedSet:
    """An incomplete payload that was dropped.

    Attributes:
        received: Number of segments that had arrived.
        needed: Number of segments that would have completed the payload; None if
            unknown.
    """

    payload_hash: bytes
    sender_id: str
    received: int
    needed: int | None
    reason: DropReason


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a payload after a segment was added.

    Attributes:
        received: Number of data and parity segments that have arrived; repeated
            segments count once.
        needed: Number of segments that complete the payload. It equals the number of
            data segments. None while only parity segments of status-go have arrived,
            because they do not contain the number of data segments.
        total: Number of the payload's data and parity segments that are known to exist.
        payload: The payload, once it is complete.
    """

    outcome: Outcome
    payload_hash: bytes
    received: int
    needed: int | None
    total: int
    payload: bytes | None = None
    dropped: tuple[DroppedSet, ...] = ()


class Key(NamedTuple):
    """Properties that all segments of one payload share."""

    sender_id: str
    payload_hash: bytes
    whole_bytes: int | None


@dataclass(slots=True)
class Finished:
    """A complete payload whose remaining segments may still arrive.

    Attributes:
        key: Properties of the payload's segments.
        total: Number of the payload's data and parity segments that are known to exist.
        ended_ms: When the payload became complete, Unix ms.
    """

    key: Key
    needed: int | None
    total: int
    slots: set[Slot]
    ended_ms: int


class Reassembler:
    """Holds segments until their payloads are complete.

    The state consists of `finished`, and of those segments of incomplete payloads for
    which `add` returned `STORED`. To restore the state after a restart, pass `finished`
    to a new reassembler, and add the stored segments again.

    Args:
        finished: Complete payloads whose remaining segments may still arrive, oldest
            first.
    """

    def __init__(
        self, options: SegmentationOptions, finished: Iterable[Finished] = ()
    ) -> None:
        self._options = options
        # In both dictionaries, the oldest entry is first. `_sets` is sorted by the time
        # of a payload's last added segment, and `_finished` by the time of completion.
        self._sets: dict[Key, SegmentSet] = {}
        newest = list(finished)[-options.max_sets :]
        self._finished = {one.key: one for one in newest}
        self._held_bytes = 0
        # Dropped payloads that no result has reported yet. If `add` raises an error,
        # they wait here for the next result.
        self._dropped: list[DroppedSet] = []

    @property
    def incomplete(self) -> int:
        """Number of incomplete payloads."""
        return len(self._sets)

    @property
    def held_bytes(self) -> int:
        """Total bytes of all held segments, without their headers."""
        return self._held_bytes

    @property
    def finished(self) -> list[Finished]:
        """Complete payloads whose remaining segments may still arrive, oldest first."""
        return list(self._finished.values())

    @property
    def next_deadline_ms(self) -> int | None:
        """When `expire` next drops a payload, Unix ms; None if no payload is held."""
        oldest = next(iter(self._sets.values()), None)
        if oldest is None:
            return None
        return oldest.updated_ms + self._options.idle_timeout_ms

    def add(self, segment: bytes, now_ms: int, sender_id: str = "") -> Progress:
        """Add a segment.

        Args:
            segment: The content of one message: a segment or, in status-go's layout, a
                payload that was not split.
            now_ms: Current time, Unix ms. It must never decrease.
            sender_id: Sender of the message. Segments of different senders are never
                joined.

        Raises:
            NotASegment: The bytes are not a segment.
            SegmentTooLarge: The segment is too long.
            SegmentsDisagree: The segment contradicts an earlier segment of its payload.
                The new segment is dropped.
            SetTooLarge: The payload exceeds the memory limit, so it is dropped.
            PayloadHashMismatch: The payload's hash is wrong, so the payload is dropped.
        """
        if len(segment) > self._options.max_segment_bytes:
            raise SegmentTooLarge(len(segment), self._options.max_segment_bytes)
        header = read_segment_header(segment)
        if header is None:
            return self._unsplit(segment)
        key = Key(sender_id, header.payload_hash, header.whole_bytes)
        late = self._late(key, header, now_ms)
        if late is not None:
            return late
        segments = self._sets.get(key)
        if segments is None:
            segments = SegmentSet(header)
        else:
            segments.check(header)
            if segments.has(header):
                return self._progress(Outcome.DUPLICATE, segments)
        self._check_size(key, segments, header)
        self._make_room(key, len(header.payload))
        segments.put(header, now_ms)
        self._held_bytes += len(header.payload)
        # Move the updated set to the end of `_sets`.
        self._sets.pop(key, None)
        self._sets[key] = segments
        try:
            payload = segments.payload()
        except PayloadHashMismatch:
            self._forget(key)
            raise
        if payload is None:
            return self._progress(Outcome.STORED, segments)
        self._forget(key)
        self._remember(key, segments, now_ms)
        return self._progress(Outcome.COMPLETE, segments, payload)

    def expire(self, now_ms: int) -> tuple[DroppedSet, ...]:
        """Drop, and return, payloads that had no new segment within the idle timeout.

        If `add` dropped payloads and then raised an error, the result includes these
        payloads.
        """
        limit_ms = now_ms - self._options.idle_timeout_ms
        for key, segments in list(self._sets.items()):
            if segments.updated_ms > limit_ms:
                break
            self._drop(key, DropReason.EXPIRED)
        return self._take_dropped()

    def _unsplit(self, content: bytes) -> Progress:
        if self._options.layout is not SegmentLayout.STATUS_GO:
            raise NotASegment(len(content))
        return Progress(
            outcome=Outcome.COMPLETE,
            payload_hash=payload_hash(content),
            received=1,
            needed=1,
            total=1,
            payload=content,
        )

    def _late(self, key: Key, header: SegmentHeader, now_ms: int) -> Progress | None:
        finished = self._finished.get(key)
        if finished is None:
            return None
        slot = (header.is_parity, header.index)
        is_over = finished.ended_ms + self._options.idle_timeout_ms <= now_ms
        if is_over or slot in finished.slots:
            del self._finished[key]
            return None
        finished.slots.add(slot)
        return Progress(
            outcome=Outcome.LATE,
            payload_hash=header.payload_hash,
            received=len(finished.slots),
            needed=finished.needed,
            total=max(finished.total, len(finished.slots)),
        )

    def _remember(self, key: Key, segments: SegmentSet, now_ms: int) -> None:
        # Data segments of status-go do not contain the number of parity segments, so
        # `segments.total` may lack parity segments that arrive later.
        may_have_more = SegmentLayout.STATUS_GO in segments.layouts
        if may_have_more or segments.received < segments.total:
            self._finished[key] = Finished(
                key, segments.data_count, segments.total, segments.slots, now_ms
            )
        if len(self._finished) > self._options.max_sets:
            del self._finished[next(iter(self._finished))]

    def _check_size(
        self, key: Key, segments: SegmentSet, header: SegmentHeader
    ) -> None:
        needed_bytes = max(
            segments.held_bytes + len(header.payload), header.whole_bytes or 0
        )
        limit_bytes = self._options.max_buffered_bytes
        if needed_bytes > limit_bytes:
            if key in self._sets:
                self._forget(key)
            raise SetTooLarge(header.payload_hash, needed_bytes, limit_bytes)

    def _make_room(self, key: Key, added_bytes: int) -> None:
        options = self._options
        others = iter([other for other in self._sets if other != key])
        while (
            len(self._sets) + (key not in self._sets) > options.max_sets
            or self._held_bytes + added_bytes > options.max_buffered_bytes
        ):
            self._drop(next(others), DropReason.EVICTED)

    def _drop(self, key: Key, reason: DropReason) -> None:
        segments = self._forget(key)
        self._dropped.append(
            DroppedSet(
                payload_hash=key.payload_hash,
                sender_id=key.sender_id,
                received=segments.received,
                needed=segments.data_count,
                reason=reason,
            )
        )

    def _forget(self, key: Key) -> SegmentSet:
        segments = self._sets.pop(key)
        self._held_bytes -= segments.held_bytes
        return segments

    def _take_dropped(self) -> tuple[DroppedSet, ...]:
        dropped = tuple(self._dropped)
        self._dropped.clear()
        return dropped

    def _progress(
        self, outcome: Outcome, segments: SegmentSet, payload: bytes | None = None
    ) -> Progress:
        return Progress(
            outcome=outcome,
            payload_hash=segments.payload_hash,
            received=segments.received,
            needed=segments.data_count,
            total=segments.total,
            payload=payload,
            dropped=self._take_dropped(),
        )
