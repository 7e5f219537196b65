"""Decodes the frames of a `ChannelDigest`, so that a view can process them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sds_core.native import ReadUint32s, ReadUint64s, Uint64, Uint64s, native, view
from sds_core.observer.blob import DamagedDigest
from sds_core.observer.sds.digest import DIALECTS, KINDS, ChannelDigest
from sds_core.observer.sds.digest_parts import CHANGED_FILTER, WHOLE_FILTER
from sds_core.observer.sds.frame_filter import Filter
from sds_core.observer.sds.segment_rows import SeenSegment
from sds_core.wire import Dialect, FrameKind, PartSizes

COUNTED = tuple(
    f"{kind.value}.{dialect.value}" for kind in KINDS for dialect in DIALECTS
)
"""Keys of `ChannelTotals.frames`."""

_BEYOND = "in a channel's digest, an index does not match the length of a list"

_KINDS_OF_CODES = tuple((kind, dialect) for kind in KINDS for dialect in DIALECTS)


@native
@dataclass(slots=True)
class Named:
    """A message id that a frame names.

    Attributes:
        sender: Sender of the message, from a history entry; empty if unknown.
        hint: Retrieval hint from a history entry; empty if the entry has no hint.
    """

    fingerprint: int
    message_id: str
    sender: str
    hint: bytes = b""


@native
@dataclass(slots=True)
class SeenFrame:
    """One frame of a channel, with its position in the topic.

    Attributes:
        clock_ms, partition, offset: Position of the frame; see `Arrival` and `order`.
        observer, seq, waku_hash: See `Arrival`.
        content: Fingerprint of the whole frame.
        code: Index of the frame's kind and dialect in `COUNTED`.
        kind, dialect, sender, lamport: See `Frame`. `sender` is empty if unknown.
            `lamport` is 0 if frames of this kind have no Lamport timestamp.
        history: Ids in the causal history, in the frame's order.
        requests: For each repair request in the frame, the requested id and whether the
            frame's filter holds the id.
        waku_hash_bytes: Waku message hash of a content frame, 32 bytes; empty if
            unknown.
        history_left_out, requests_left_out: Number of history entries, and number of
            requests, that were dropped because of limits.
        segment: The segment in the content; None if the content is no segment.
    """

    clock_ms: int
    partition: int
    offset: int
    time_ms: int
    observer: str
    seq: int
    waku_hash: int
    content: int
    code: int
    kind: FrameKind
    dialect: Dialect
    sender: str
    lamport: Uint64
    named: Named
    history: list[Named]
    requests: Sequence[tuple[Named, bool]]
    filter: Filter | None
    sizes: PartSizes
    waku_hash_bytes: bytes
    history_left_out: int
    requests_left_out: int
    segment: SeenSegment | None

    @property
    def order(self) -> tuple[int, int, int]:
        """Sort key that puts the frames of a channel in the right order.

        Frames of one partition are sorted by their offsets. The key begins with the
        clock, so frames are still sorted correctly if partitions are added and the
        channel moves to another partition.
        """
        return self.clock_ms, self.partition, self.offset


def frames_of(digest: ChannelDigest) -> Iterator[SeenFrame]:
    """Yield the frames of a digest in order of offsets, with their filters.

    Raises:
        DamagedDigest: A row refers to something that the digest does not contain.
    """
    try:
        yield from _frames_of(digest)
    except (IndexError, OverflowError, ValueError) as error:
        raise DamagedDigest(str(error)) from error


def _frames_of(digest: ChannelDigest) -> Iterator[SeenFrame]:
    new, part_sizes = tuple.__new__, PartSizes
    partition, senders = digest.partition, digest.sender_names
    observers, kinds = digest.observer_names, _KINDS_OF_CODES
    names = [
        Named(print_, message_id, senders[sender], hint)
        for print_, message_id, sender, hint in zip(
            digest.name_prints,
            digest.names,
            digest.name_senders,
            digest.name_hints,
            strict=True,
        )
    ]
    histories = [names[index] for index in digest.histories]
    requests = [
        (names[index], held)
        for index, held in zip(digest.requests, digest.requests_held, strict=True)
    ]
    segments = dict(digest.segments)
    filters = _FilterReader(digest)
    requests_from = 0
    for (
        offset,
        time_ms,
        clock_ms,
        observer,
        seq,
        waku_hash,
        content,
        waku_hash_bytes,
        code,
        name,
        sender,
        lamport,
        history_from,
        history_to,
        history_left_out,
        requests_to,
        requests_left_out,
        packed,
        bits_set,
        changes_to,
        sizes,
    ) in digest.rows:
        kind, dialect = kinds[code]
        lowest = min(observer, code, name, sender, history_from, requests_from)
        if (
            lowest < 0
            or not history_from <= history_to <= len(histories)
            or not requests_from <= requests_to <= len(requests)
        ):
            raise IndexError(_BEYOND)
        yield SeenFrame(
            clock_ms,
            partition,
            offset,
            time_ms,
            observers[observer],
            seq,
            waku_hash,
            content,
            code,
            kind,
            dialect,
            senders[sender],
            lamport,
            names[name],
            histories[history_from:history_to],
            requests[requests_from:requests_to],
            filters.read(packed, dialect, bits_set, changes_to) if packed else None,
            new(part_sizes, sizes),
            waku_hash_bytes,
            history_left_out,
            requests_left_out,
            segments.get(offset),
        )
        requests_from = requests_to
    if requests_from != len(requests) or not filters.is_at_end():
        raise IndexError(_BEYOND)


@native
class _FilterReader:
    _digest: ChannelDigest
    _positions: ReadUint32s
    _changes: ReadUint64s
    # Number of whole filters, and number of changed words, that were read so far.
    _whole: int
    _read: int
    _filter: Filter | None
    _words: Uint64s

    def __init__(self, digest: ChannelDigest) -> None:
        self._digest = digest
        self._positions = view(np.frombuffer(digest.positions, np.uint32))
        self._changes = view(np.frombuffer(digest.changes, np.uint64))
        self._whole = self._read = 0
        self._filter = None
        self._words = view(np.empty(0, np.uint64))

    def read(
        self, packed: int, dialect: Dialect, bits_set: int, changes_to: int
    ) -> Filter:
        """Return the next filter.

        Raises:
            IndexError: The digest has no further filter.
        """
        if packed == WHOLE_FILTER:
            bits = bytearray(self._digest.filters[self._whole])
            shapes = self._digest.filter_shapes
            m_bits: int = shapes[2 * self._whole]
            k: int = shapes[2 * self._whole + 1]
            self._whole += 1
            self._filter = Filter(dialect, m_bits, k, bits, bits_set)
            self._words = view(np.frombuffer(bits, np.uint64, len(bits) // 8))
        last = self._filter
        if packed > CHANGED_FILTER or last is None or changes_to < self._read:
            raise IndexError(_BEYOND)
        place: int
        for place in range(self._read, changes_to):
            self._words[self._positions[place]] = self._changes[place]
        self._read = changes_to
        return last.with_fill(dialect, bits_set)

    def is_at_end(self) -> bool:
        digest = self._digest
        is_whole = len(digest.filters) == self._whole
        has_shapes = len(digest.filter_shapes) == 2 * self._whole
        changes: int = len(self._changes)
        are_read: bool = self._read == changes and changes == len(self._positions)
        return is_whole and has_shapes and are_read
