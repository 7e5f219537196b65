"""The frames of a digest, as a view reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.sds.digest import (
    DIALECTS,
    INT_COLUMNS,
    KINDS,
    ChannelDigest,
    FilterCode,
)
from sds_core.observer.sds.frame_filter import Filter
from sds_core.wire import Dialect, FrameKind, PartSizes


class Named(NamedTuple):
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


class SeenFrame(NamedTuple):
    """One frame of a channel, with its place in the topic.

    Attributes:
        clock_ms, partition, offset: Place of the frame in the channel; see `order`.
        time_ms: Record time, Unix ms.
        observer, seq, waku_hash: See `Arrival`.
        content: Fingerprint of the whole frame.
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
    """

    clock_ms: int
    partition: int
    offset: int
    time_ms: int
    observer: str
    seq: int
    waku_hash: int
    content: int
    kind: FrameKind
    dialect: Dialect
    sender: str
    lamport: int
    named: Named
    history: Sequence[Named]
    requests: Sequence[tuple[Named, bool]]
    filter: Filter | None
    sizes: PartSizes
    waku_hash_bytes: bytes
    history_left_out: int
    requests_left_out: int

    @property
    def order(self) -> tuple[int, int, int]:
        """Sort key of the frames of one channel.

        Within one partition this is the order of offsets. It also holds if partitions
        are added and the channel moves to another partition.
        """
        return self.clock_ms, self.partition, self.offset


def frames_of(digest: ChannelDigest) -> Iterator[SeenFrame]:
    """Yields the frames of a digest in order of offsets, with their filters."""
    columns = {
        name: np.frombuffer(getattr(digest, name), dtype=np.int64).tolist()
        for name in INT_COLUMNS
    }
    lamports = np.frombuffer(digest.lamports, dtype=np.uint64).tolist()
    senders = digest.sender_names
    name_senders = np.frombuffer(digest.name_senders, dtype=np.int64).tolist()
    names = [
        Named(fingerprint(name), name, senders[sender], hint)
        for name, sender, hint in zip(
            digest.names, name_senders, digest.name_hints, strict=True
        )
    ]
    sizes = np.frombuffer(digest.sizes, dtype=np.uint32).reshape(-1, 5).tolist()
    history = [names[i] for i in columns["history"]]
    requests = [
        (names[i], bool(held))
        for i, held in zip(columns["requests"], columns["request_held"], strict=True)
    ]
    filters = _filters_of(digest, columns)
    history_from = requests_from = 0
    for row, offset in enumerate(columns["offsets"]):
        kind, dialect = divmod(columns["kinds"][row], 2)
        history_to = columns["history_ends"][row]
        requests_to = columns["request_ends"][row]
        yield SeenFrame(
            clock_ms=columns["clocks"][row],
            partition=digest.partition,
            offset=offset,
            time_ms=columns["times"][row],
            observer=digest.observer_names[columns["observers"][row]],
            seq=columns["seqs"][row],
            waku_hash=columns["hashes"][row],
            content=columns["contents"][row],
            kind=KINDS[kind],
            dialect=DIALECTS[dialect],
            sender=senders[columns["senders"][row]],
            lamport=lamports[row],
            named=names[columns["ids"][row]],
            history=history[history_from:history_to],
            requests=requests[requests_from:requests_to],
            filter=next(filters),
            sizes=PartSizes(*sizes[row]),
            waku_hash_bytes=digest.waku_hashes[row],
            history_left_out=columns["history_left_out"][row],
            requests_left_out=columns["requests_left_out"][row],
        )
        history_from, requests_from = history_to, requests_to


def _filters_of(
    digest: ChannelDigest, columns: dict[str, list[int]]
) -> Iterator[Filter | None]:
    """Yields each frame's filter; the bits of changed filters are changed in place."""
    whole = iter(zip(digest.filters, *[iter(digest.filter_shapes)] * 2, strict=True))
    changed_from = 0
    bits, m_bits, k = bytearray(), 0, 0
    dialects = columns["kinds"]
    # Local: each access to a member of an enum costs a call.
    none, whole_filter = FilterCode.NONE, FilterCode.WHOLE
    for row, kind in enumerate(columns["filter_kinds"]):
        changed_to = columns["change_ends"][row]
        if kind == none:
            yield None
            continue
        if kind == whole_filter:
            packed, m_bits, k = next(whole)
            bits = bytearray(packed)
        for change in range(changed_from, changed_to):
            bits[columns["positions"][change]] = digest.changes[change]
        changed_from = changed_to
        yield Filter(
            DIALECTS[dialects[row] % 2], m_bits, k, bits, columns["bits_set"][row]
        )
