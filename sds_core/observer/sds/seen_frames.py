"""The frames of a digest, as a view reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sds_core.native import ReadUint32s, ReadUint64s, Uint64, Uint64s, native, view
from sds_core.observer.sds.digest import DIALECTS, KINDS, ChannelDigest
from sds_core.observer.sds.digest_parts import WHOLE_FILTER
from sds_core.observer.sds.frame_filter import Filter
from sds_core.observer.sds.segment_rows import SeenSegment
from sds_core.wire import Dialect, FrameKind, PartSizes

COUNTED = tuple(
    f"{kind.value}.{dialect.value}" for kind in KINDS for dialect in DIALECTS
)
"""Keys of `ChannelTotals.frames`."""

_KINDS_OF_CODES = tuple((kind, dialect) for kind in KINDS for dialect in DIALECTS)


@native
@dataclass(slots=True)
class Named:
    """A message id that a frame names.

    Attributes:
        fingerprint: `fingerprint` of the id.
        message_id: The id.
        sender: Sender of the message, from a history entry; empty if unknown.
        hint: Retrieval hint from a history entry; empty if there is none.
    """

    fingerprint: int
    message_id: str
    sender: str
    hint: bytes = b""


@native
@dataclass(slots=True)
class SeenFrame:
    """One frame of a channel, with its place in the topic.

    Attributes:
        clock_ms, partition, offset: Place of the frame in the channel; see `order`.
        time_ms: Record time, Unix ms.
        observer, seq, waku_hash: See `Arrival`.
        content: Fingerprint of the whole frame.
        code: Index of kind and dialect in `COUNTED`.
        kind, dialect, sender, lamport: As in `Frame`; the sender is empty if unknown,
            the Lamport timestamp 0 if the kind has none.
        named: The frame's own id.
        history: Ids that its causal history names, in the frame's order.
        requests: Ids that its repair requests name, and whether its own filter holds
            each.
        filter: The frame's bloom filter; None if it is absent or invalid.
        sizes: Number of bytes of each part.
        waku_hash_bytes: Waku message hash of a content frame, 32 bytes; empty if
            unknown.
        history_left_out, requests_left_out: Number of history entries and requests
            that limits leave out.
        segment: What the content is a segment of; None if it is none.
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
        """Sort key of the frames of one channel.

        Within one partition this is the order of offsets. It also holds if partitions
        are added and the channel moves to another partition.
        """
        return self.clock_ms, self.partition, self.offset


def frames_of(digest: ChannelDigest) -> Iterator[SeenFrame]:
    """Yields the frames of a digest in order of offsets, with their filters."""
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


@native
class _FilterReader:
    """Reads the filters of a digest in order; changes the bits of one in place."""

    _whole: Iterator[bytes]
    _shapes: Iterator[int]
    _positions: ReadUint32s
    _changes: ReadUint64s
    _read: int
    _filter: Filter
    _words: Uint64s

    def __init__(self, digest: ChannelDigest) -> None:
        self._whole = iter(digest.filters)
        self._shapes = iter(digest.filter_shapes)
        self._positions = view(np.frombuffer(digest.positions, np.uint32))
        self._changes = view(np.frombuffer(digest.changes, np.uint64))
        self._read = 0
        self._filter = Filter(Dialect.SPEC, 1, 0, bytearray(), 0)
        self._words = view(np.empty(0, np.uint64))

    def read(
        self, packed: int, dialect: Dialect, bits_set: int, changes_to: int
    ) -> Filter:
        """Return the next filter.

        Args:
            packed: How it is packed.
            dialect: Its dialect.
            bits_set: Number of bits that are 1.
            changes_to: End of its slice of the words that differ.
        """
        if packed == WHOLE_FILTER:
            bits = bytearray(next(self._whole))
            m_bits, k = next(self._shapes), next(self._shapes)
            self._filter = Filter(dialect, m_bits, k, bits, bits_set)
            self._words = view(np.frombuffer(bits, np.uint64, len(bits) // 8))
        elif changes_to > self._read:
            place: int
            for place in range(self._read, changes_to):
                self._words[self._positions[place]] = self._changes[place]
            self._read = changes_to
        return self._filter.with_fill(dialect, bits_set)
