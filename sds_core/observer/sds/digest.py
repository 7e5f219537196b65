"""Encodes the frames of one channel, from one chunk of records, as a compact digest.

Moving whole frames between processes would be expensive, because each frame repeats
most of the previous history and has an 18 kB bloom filter. A `ChannelDigest` stores an
id once, even if many frames name the id. All histories are slices of one list. If a
filter differs from the previous filter in few words, only these words are stored. A
digest omits unknown fields and message content. However, if the content is a segment,
the digest has the values of the segment's header. `seen_frames` decodes digests.
"""

from __future__ import annotations

import msgspec

from sds_core.native import native
from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.record import Arrival
from sds_core.observer.sds.digest_parts import (
    NO_FILTER,
    WHOLE_FILTER,
    Filters,
    Histories,
    Names,
    usable_id,
)
from sds_core.observer.sds.frame_filter import Filter, usable_filter
from sds_core.observer.sds.limits import MOST_REQUESTS
from sds_core.observer.sds.segment_rows import SegmentRow, segment_row
from sds_core.wire import (
    DEFAULT_PARAMETERS,
    MAX_ID_CHARACTERS,
    Dialect,
    Frame,
    FrameKind,
    Outline,
    PartSizes,
    outlined_entry,
    part_sizes,
)

KINDS = tuple(FrameKind)
DIALECTS = tuple(Dialect)
_KIND_CODES = {
    (kind, dialect): KINDS.index(kind) * 2 + DIALECTS.index(dialect)
    for kind in KINDS
    for dialect in DIALECTS
}
_SPEC = Dialect.SPEC
_SPEC_CONTENT = _KIND_CODES[FrameKind.CONTENT, _SPEC]
_SPEC_SYNC = _KIND_CODES[FrameKind.SYNC, _SPEC]
_SPEC_BITS, _SPEC_K = DEFAULT_PARAMETERS.m_bits, DEFAULT_PARAMETERS.k
_SPEC_BYTES = DEFAULT_PARAMETERS.length_bytes
"""Size of every filter of the dialect `spec`, bytes; see `filter_bits`."""

_ROW_BYTES = 1_500
_TIMES_AS_LONG = 5
"""A row takes about `_ROW_BYTES` bytes of memory. A new history entry takes about
`_TIMES_AS_LONG` times as many bytes of memory as bytes of the frame."""

_CONTENT_CODES = frozenset(_KIND_CODES[FrameKind.CONTENT, one] for one in DIALECTS)

Row = tuple[
    int, int, int, int, int, int, int, bytes, int, int, int, int, int, int, int,
    int, int, int, int, int, tuple[int, int, int, int, int],
]  # fmt: skip
"""A frame in a digest:

- offset, time_ms, clock_ms, observer, seq, waku_hash: see `Arrival`. The observer is an
  index into `observer_names`;
- content: fingerprint of the whole frame;
- waku_hash_bytes: Waku message hash of a content frame; empty for other frames;
- kind: twice the index of the frame's kind in `KINDS`, plus the index of its dialect in
  `DIALECTS`;
- name: index of the frame's message id in `names`;
- sender: index of the frame's sender in `sender_names`;
- lamport: Lamport timestamp; 0 if the kind has no timestamp;
- history from, history to: start and end of the frame's slice of `histories`;
- history dropped: number of history entries that were dropped because of limits;
- requests to: end of the frame's slice of `requests`, which starts where the slice of
  the previous frame ends;
- requests dropped: number of requests that were dropped because of limits;
- filter: how the filter is encoded: `NO_FILTER`, `WHOLE_FILTER` or `CHANGED_FILTER`;
- bits set: number of bits of the filter that are 1;
- changes to: end of the frame's slices of `positions` and `changes`, which start where
  the slices of the previous frame end;
- sizes: number of bytes of each part of the frame.
"""


class ChannelDigest(msgspec.Struct, array_like=True):
    """The frames of one channel, from one chunk of one partition, in order of offsets.

    Attributes:
        histories: Indices into `names`.
        requests: Indices into `names`.
        requests_held: For each of `requests`, whether the filter of the frame with the
            request holds the requested id.
        names: Message ids. Each combination of id, sender and hint appears once.
        name_prints: For each of `names`, its `fingerprint`.
        name_senders: For each of `names`, the message's sender, as an index into
            `sender_names`.
        name_hints: For each of `names`, its retrieval hint; empty if it has no hint.
        sender_names: Participant ids; the first id is empty and stands for an unknown
            sender.
        filters: Bits of each filter that is stored whole, in order of `rows`.
        filter_shapes: ``m_bits`` and ``k`` of each of `filters`, in one flat list.
        positions: Positions of the words in which a filter differs from the previous
            filter, ``uint32``.
        changes: For each of `positions`, the filter's word, ``uint64``.
        segments: The segments that the frames contain, in order of offsets.
    """

    partition: int
    rows: list[Row]
    histories: list[int]
    requests: list[int]
    requests_held: list[bool]
    names: list[str]
    name_prints: list[int]
    name_senders: list[int]
    name_hints: list[bytes]
    sender_names: list[str]
    observer_names: list[str]
    filters: list[bytes]
    filter_shapes: list[int]
    positions: bytes
    changes: bytes
    segments: list[SegmentRow]


@native
class ChannelDigester:
    """Builds the digest of one channel's frames from one chunk of one partition."""

    _partition: int
    _rows: list[Row]
    _names: Names
    _histories: Histories
    _filters: Filters
    _requests: list[int]
    _requests_held: list[bool]
    _observers: dict[str, int]
    _segments: list[SegmentRow]

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._rows = []
        self._names = Names()
        self._histories = Histories(self._names)
        self._filters = Filters()
        self._requests = []
        self._requests_held = []
        self._observers = {}
        self._segments = []

    def add(self, frame: Frame, value: bytes, arrival: Arrival) -> None:
        """Append one frame."""
        names = self._names
        name, sender = names.index(frame.message_id), names.sender(frame.sender_id)
        begin, end, left_out = self._histories.add(frame.causal_history)
        filter_ = usable_filter(frame)
        packed, bits_set = self._filters.add(filter_)
        requests = frame.repair_request
        requests_left_out = max(0, len(requests) - MOST_REQUESTS) + self._add_requests(
            [one.message_id for one in requests[:MOST_REQUESTS]], filter_
        )
        self._append(
            arrival,
            value,
            _KIND_CODES[frame.kind, frame.dialect],
            (name, sender, frame.lamport or 0, begin, end, left_out),
            requests_left_out,
            packed,
            bits_set,
            part_sizes(frame.dialect, value),
        )
        if frame.kind is FrameKind.CONTENT:
            self._add_segment(arrival.offset, frame.content, frame.sender_id.encode())

    def add_outline(self, outline: Outline, value: bytes, arrival: Arrival) -> int:
        """Append the frame of an outline if the outline is valid and within the limits.

        The result is the approximate number of bytes that the frame takes in memory; 0
        if the frame was not appended.
        """
        (
            sender_id,
            message_id,
            _,
            lamport,
            entries,
            bits,
            raw_requests,
            content,
            sizes,
        ) = outline
        text = usable_id(message_id)
        if text is None or len(raw_requests) > MOST_REQUESTS:
            return 0
        requests = []
        for raw in raw_requests:
            request = outlined_entry(raw)
            if request is None or len(request.message_id) > MAX_ID_CHARACTERS:
                return 0
            requests.append(request.message_id)
        names, histories = self._names, self._histories
        found = histories.new_entries(entries, sizes[1])
        sender = names.sender_in_bytes(sender_id)
        if found is None or sender is None:
            return 0
        name = names.index(text)
        begin = found[0]
        histories.add_new(found)
        filter_, packed, bits_set = None, NO_FILTER, 0
        if len(bits) == _SPEC_BYTES:
            packed, bits_set = self._filters.add_bits(_SPEC, _SPEC_BITS, _SPEC_K, bits)
            if requests:
                filter_ = Filter(_SPEC, _SPEC_BITS, _SPEC_K, bits, bits_set)
        if requests:
            self._add_requests(requests, filter_)
        kind = _SPEC_CONTENT if content else _SPEC_SYNC
        frame = (name, sender, lamport, begin, begin + len(entries), 0)
        self._append(arrival, value, kind, frame, 0, packed, bits_set, sizes)
        if content:
            self._add_segment(arrival.offset, content, sender_id)
        kept = _ROW_BYTES + _TIMES_AS_LONG * sum(found[2])
        return kept + 2 * len(bits) if packed == WHOLE_FILTER else kept

    def finish(self) -> ChannelDigest:
        """The digest of all frames that were added."""
        names, filters = self._names, self._filters
        return ChannelDigest(
            partition=self._partition,
            rows=self._rows,
            histories=self._histories.indices,
            requests=self._requests,
            requests_held=self._requests_held,
            names=names.ids,
            name_prints=names.prints,
            name_senders=names.name_senders,
            name_hints=names.hints,
            sender_names=list(names.senders),
            observer_names=list(self._observers),
            filters=filters.whole,
            filter_shapes=filters.shapes,
            positions=filters.positions,
            changes=filters.words,
            segments=self._segments,
        )

    def _add_requests(self, message_ids: list[str], filter_: Filter | None) -> int:
        left_out = 0
        # If a frame requests an id repeatedly, the digest has one request for the id.
        for message_id in dict.fromkeys(message_ids):
            if not message_id:
                continue
            if len(message_id) > MAX_ID_CHARACTERS:
                left_out += 1
                continue
            self._requests.append(self._names.index(message_id))
            held = filter_ is not None and filter_.contains(message_id)
            self._requests_held.append(held)
        return left_out

    def _add_segment(self, offset: int, content: bytes, sender_id: bytes) -> None:
        row = segment_row(offset, content, sender_id)
        if row is not None:
            self._segments.append(row)

    def _append(
        self,
        arrival: Arrival,
        value: bytes,
        kind: int,
        frame: tuple[int, int, int, int, int, int],
        requests_left_out: int,
        packed: int,
        bits_set: int,
        sizes: PartSizes,
    ) -> None:
        offset, time_ms, clock_ms, observer, seq, waku_hash, hash_bytes = arrival
        self._rows.append(
            (
                offset,
                time_ms,
                clock_ms,
                self._observers.setdefault(observer, len(self._observers)),
                seq,
                waku_hash,
                fingerprint(value),
                hash_bytes if kind in _CONTENT_CODES else b"",
                kind,
                *frame,
                len(self._requests),
                requests_left_out,
                packed,
                bits_set,
                self._filters.changed,
                sizes,
            )
        )
