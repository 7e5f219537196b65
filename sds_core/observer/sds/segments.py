"""Tracks payloads that are sent in several segments (docs/figures.md, 13)."""

from __future__ import annotations

import msgspec

from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.journal import Journal
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.limits import MOST_SEGMENT_SETS, LeftOut
from sds_core.observer.sds.segment_rows import SeenSegment
from sds_core.observer.sds.totals import ChannelTotals


class SegmentSet(msgspec.Struct, array_like=True):
    """The seen segments of one segmented message. Fields are stored by position.

    Attributes:
        data_count, parity_count, whole_bytes: See `SeenSegment`; 0 or None until a
            segment states the value.
        data, parity: Little-endian bitmaps of the seen segments: bit i is set if the
            segment with index i was seen.
        latest_ms: The channel's clock when the latest segment was seen, Unix ms.
    """

    data_count: int | None = None
    parity_count: int | None = None
    whole_bytes: int | None = None
    data: bytes = b""
    parity: bytes = b""
    latest_ms: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether enough segments of any kind were seen to reassemble the payload."""
        seen = _bits(self.data).bit_count() + _bits(self.parity).bit_count()
        return self.data_count is not None and seen >= self.data_count

    def has(self, segment: SeenSegment) -> bool:
        """Whether a segment of this kind and index was seen before."""
        seen = _bits(self.parity if segment.is_parity else self.data)
        return seen >> segment.place & 1 == 1

    def agrees(self, segment: SeenSegment) -> bool:
        """Whether no number that a segment states contradicts an earlier segment."""
        return (
            _agree(self.data_count, segment.data_count)
            and _agree(self.parity_count, segment.parity_count)
            and _agree(self.whole_bytes, segment.whole_bytes)
        )

    def add(self, segment: SeenSegment, clock_ms: int) -> None:
        """Add a segment, for which `agrees` is True."""
        self.data_count = self.data_count or segment.data_count
        self.parity_count = self.parity_count or segment.parity_count
        self.whole_bytes = self.whole_bytes or segment.whole_bytes
        if segment.is_parity:
            self.parity = _with(self.parity, segment.place)
        else:
            self.data = _with(self.data, segment.place)
        self.latest_ms = clock_ms


class SegmentsState(msgspec.Struct, array_like=True):
    """The segments of each segmented message.

    Keys are `SeenSegment.payload`. The message whose latest segment is oldest is first.

    Attributes:
        open: Messages of which too few segments were seen so far.
        complete: Messages of which enough segments were seen. More of their segments
            may still arrive.
    """

    open: dict[int, SegmentSet] = {}
    complete: dict[int, SegmentSet] = {}


class Segments:
    """Tracks segmented messages, and counts complete and incomplete ones."""

    def __init__(
        self,
        settings: RuleSettings,
        totals: ChannelTotals,
        deadlines: Deadlines,
        state: SegmentsState,
        journal: Journal | None = None,
    ) -> None:
        self._idle_ms = settings.segment_idle_ms
        self._totals = totals
        self._deadlines = deadlines
        self._open, self._complete = state.open, state.complete
        self._journal = journal
        for key, one in self._open.items():
            deadlines.add(one.latest_ms + self._idle_ms, Due.SEGMENTS_IDLE, key)

    def first_copy(self, segment: SeenSegment, clock_ms: int) -> None:
        """Process the first copy of a message whose content is a segment."""
        if segment.has_wrong_hash:
            self._totals.segments_disagreeing += 1
            return
        key = segment.payload
        found = self._open.get(key) or self._complete.get(key)
        if found is not None and not found.agrees(segment):
            self._totals.segments_disagreeing += 1
            return
        if found is not None and found.has(segment):
            if key in self._open:
                return
            # The payload was complete and is sent again, so it counts as a new message.
            # An example is a heartbeat that never changes.
            del self._complete[key]
            found = None
        if found is None:
            found = SegmentSet()
            self._totals.segmented += 1
            self._totals.segmented_open += 1
        was_complete = found.is_complete
        found.add(segment, clock_ms)
        if segment.is_parity:
            self._totals.segments_parity += 1
        else:
            self._totals.segments_data += 1
        # The entry moves to the end, so that `_open` and `_complete` stay in order of
        # the latest segment.
        self._open.pop(key, None)
        self._complete.pop(key, None)
        if not found.is_complete:
            self._open[key] = found
            self._deadlines.add(clock_ms + self._idle_ms, Due.SEGMENTS_IDLE, key)
        else:
            self._complete[key] = found
            if not was_complete:
                self._totals.segmented_open -= 1
                self._totals.segmented_complete += 1
                self._note(key, "segmented_complete", clock_ms)
        self._evict()

    def idle_passed(self, key: int, deadline_ms: int) -> None:
        """Drop a message as incomplete if no segment arrived for `segment_idle_ms`."""
        found = self._open.get(key)
        if found is not None and found.latest_ms + self._idle_ms == deadline_ms:
            self._give_up(key)
            self._note(key, "segmented_incomplete", deadline_ms)

    def forget_before(self, clock_ms: int) -> None:
        """Drop complete messages whose latest segment was seen before `clock_ms`."""
        complete = self._complete
        while complete:
            key = next(iter(complete))
            if complete[key].latest_ms >= clock_ms:
                return
            del complete[key]

    def _note(self, key: int, what: str, time_ms: int) -> None:
        if self._journal is not None:
            self._journal.note(key, what, time_ms)

    def _give_up(self, key: int) -> None:
        del self._open[key]
        self._totals.segmented_open -= 1
        self._totals.segmented_incomplete += 1

    def _evict(self) -> None:
        while len(self._open) > MOST_SEGMENT_SETS:
            self._give_up(next(iter(self._open)))
            self._totals.leave_out(LeftOut.SEGMENT_SET)
        while len(self._complete) > MOST_SEGMENT_SETS:
            # If a further segment of the dropped message arrives, it counts as the
            # first segment of a new message.
            del self._complete[next(iter(self._complete))]


def _agree(known: int | None, said: int | None) -> bool:
    return not known or not said or known == said


def _bits(packed: bytes) -> int:
    return int.from_bytes(packed, "little")


def _with(packed: bytes, place: int) -> bytes:
    bits = _bits(packed) | 1 << place
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")
