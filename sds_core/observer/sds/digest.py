"""A chunk of frames becomes one compact digest per channel.

Whole frames are dear to move between processes: mostly repeated history and an
18 kB bloom filter each. A `ChannelDigest` keeps what the view needs as packed
columns: each id once per chunk, and each filter as the bytes that differ from the
filter before it. Nothing is lost that the observer model uses; content and unknown
fields are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.record import Arrival
from sds_core.wire import (
    BloomError,
    Dialect,
    Frame,
    FrameKind,
    PartSizes,
    count_set_bits,
    false_positive_rate,
    filter_bits,
    part_sizes,
    probes,
)

_probes = lru_cache(maxsize=32_768)(probes)
"""The same ids are searched in every frame's filter. More than a channel remembers
(`ObserverSettings.remembered`), or a search of all would find none."""

LONGEST_HINT = 1_024
"""Bytes of a retrieval hint; js-waku's has 32. A longer one is left out, not cut."""

_KINDS = tuple(FrameKind)
_DIALECTS = tuple(Dialect)
_KIND_CODES = {kind: code for code, kind in enumerate(_KINDS)}
_DIALECT_CODES = {dialect: code for code, dialect in enumerate(_DIALECTS)}

_NO_FILTER, _WHOLE_FILTER, _CHANGED_FILTER = range(3)


class ChannelDigest(msgspec.Struct, array_like=True):
    """Frames of one channel in one chunk of one partition, in offset order.

    Columns are packed native integers: ``int64`` unless said otherwise. With n
    frames, h history entries, r repair requests, d distinct ids and senders of ids:

    Attributes:
        partition: Kafka partition of the chunk.
        offsets, times, clocks, seqs, hashes, contents: Shape (n,); see `Arrival`.
            `contents` are fingerprints of whole frames.
        observers: Index into `observer_names`, shape (n,).
        kinds: Kind and dialect codes, ``kind * 2 + dialect``, shape (n,).
        ids, senders: Index into `names` and `sender_names`, shape (n,).
        lamports: ``uint64``; 0 where the kind has none, shape (n,).
        history_ends, request_ends: Ends of each frame's slice, shape (n,).
        history, requests: Index into `names`, shapes (h,) and (r,).
        request_held: 1 where the requester's own filter holds the id, (r,).
        names: Message ids, each once for every sender and retrieval hint that it is
            named with, shape (d,).
        name_senders: That sender, index into `sender_names`, shape (d,).
        sender_names: Participant ids; the first is the empty, unknown one.
        observer_names: Tap ids.
        filter_kinds: None, whole or changed, shape (n,).
        filters: Bits of each whole filter, in order.
        filter_shapes: ``m_bits, k`` of each whole filter, flat.
        bits_set: Ones in each frame's filter, shape (n,).
        change_ends: Ends of each frame's slice of `positions`, shape (n,).
        positions, changes: Byte positions that differ and their new bytes.
        sizes: Bytes of each frame by part, ``uint32``, shape (n, 5); see `PartSizes`.
        waku_hashes: Waku message hashes of content frames, empty for all others and
            where none is known, shape (n,).
        name_hints: The hint of each of `names`, empty without one, shape (d,).
    """

    partition: int
    offsets: bytes
    times: bytes
    clocks: bytes
    seqs: bytes
    hashes: bytes
    contents: bytes
    observers: bytes
    kinds: bytes
    ids: bytes
    senders: bytes
    lamports: bytes
    history_ends: bytes
    history: bytes
    request_ends: bytes
    requests: bytes
    request_held: bytes
    names: list[str]
    name_senders: bytes
    sender_names: list[str]
    observer_names: list[str]
    filter_kinds: bytes
    filters: list[bytes]
    filter_shapes: list[int]
    bits_set: bytes
    change_ends: bytes
    positions: bytes
    changes: bytes
    sizes: bytes
    waku_hashes: list[bytes]
    name_hints: list[bytes]

    def to_bytes(self) -> bytes:
        """Pack for the way from the reader to the view."""
        return _ENCODER.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> ChannelDigest:
        """Unpack what `to_bytes` made."""
        return _DECODER.decode(data)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ChannelDigest)


_INT_COLUMNS = (
    "offsets",
    "times",
    "clocks",
    "seqs",
    "hashes",
    "contents",
    "observers",
    "kinds",
    "ids",
    "senders",
    "history_ends",
    "history",
    "request_ends",
    "requests",
    "request_held",
    "filter_kinds",
    "bits_set",
    "change_ends",
    "positions",
)


class Filter:
    """A frame's bloom filter, as a view can test it.

    Attributes:
        dialect: Whose hash and bit order it uses.
        m_bits: Size in bits.
        k: Number of hash functions.
        bits: Packed bits; shared with the frame after it, so a filter is good
            only until the next frame of its digest is taken.
        bits_set: How many bits are 1.
    """

    __slots__ = ("bits", "bits_set", "dialect", "k", "m_bits")

    def __init__(
        self,
        dialect: Dialect,
        m_bits: int,
        k: int,
        bits: bytes | bytearray | memoryview,
        bits_set: int,
    ) -> None:
        self.dialect = dialect
        self.m_bits = m_bits
        self.k = k
        self.bits = bits
        self.bits_set = bits_set

    def contains(self, message_id: str) -> bool:
        """Whether the filter holds the id, or seems to by a false positive."""
        bits = self.bits
        # Not `all`: its generator takes twice as long.
        for index, mask in _probes(message_id, self.dialect, self.m_bits, self.k):
            if not bits[index] & mask:
                return False
        return True

    def false_positive_rate(self) -> float:
        """Chance that an id never put in seems to be held, from the fill."""
        return false_positive_rate(self.bits_set, self.m_bits, self.k)


class Named(NamedTuple):
    """A message id that a frame names.

    Attributes:
        fingerprint: `fingerprint` of the id.
        message_id: The id.
        sender: Who sent it, as named by a history entry; empty if not said.
        hint: A retrieval hint that an entry gives for it; empty if none does.
    """

    fingerprint: int
    message_id: str
    sender: str
    hint: bytes = b""


class SeenFrame(NamedTuple):
    """One frame, as the view sees it.

    Attributes:
        clock_ms, partition, offset: Its place in the channel; see `order`.
        time_ms: Record time, Unix ms.
        observer, seq, waku_hash: See `Arrival`.
        content: Fingerprint of the whole frame.
        kind, dialect, sender, lamport: Of the frame.
        named: Its own id.
        history: What its causal history names, in the frame's order.
        requests: What it asks to be repaired, and whether its own filter holds it.
        filter: Its bloom filter; None if there is none or it cannot be read.
        sizes: Its bytes by part.
        waku_hash_bytes: The Waku message hash of a content frame; empty if unknown.
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

    @property
    def order(self) -> tuple[int, int, int]:
        """Sort key of the frames of one channel.

        For one partition this is the offset order; it stays right after
        partitions are added and a channel moves to another.
        """
        return self.clock_ms, self.partition, self.offset


class ChannelDigester:
    """Builds the digest of one channel in one chunk of one partition."""

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._columns = {name: array("q") for name in _INT_COLUMNS}
        self._lamports = array("Q")
        self._sizes = array("I")
        self._waku_hashes: list[bytes] = []
        self._names: dict[tuple[str, str, bytes], int] = {}
        self._name_senders = array("q")
        self._senders: dict[str, int] = {"": 0}
        self._observers: dict[str, int] = {}
        self._filters: list[bytes] = []
        self._filter_shapes: list[int] = []
        self._changes = bytearray()
        # The filter before this one: dialect, m_bits, k, bytes; and its bits.
        self._last_filter: tuple[tuple[Dialect, int, int, int], np.ndarray] | None = (
            None
        )

    def add(self, frame: Frame, value: bytes, arrival: Arrival) -> None:
        """Append one frame.

        Args:
            frame: The decoded frame; all of one digester are of one channel.
            value: The same frame as it was on the wire.
            arrival: How it came.
        """
        columns = self._columns
        columns["offsets"].append(arrival.offset)
        columns["times"].append(arrival.time_ms)
        columns["clocks"].append(arrival.clock_ms)
        columns["seqs"].append(arrival.seq)
        columns["hashes"].append(arrival.waku_hash)
        columns["contents"].append(fingerprint(value))
        columns["observers"].append(
            self._observers.setdefault(arrival.observer, len(self._observers))
        )
        columns["kinds"].append(
            _KIND_CODES[frame.kind] * 2 + _DIALECT_CODES[frame.dialect]
        )
        columns["ids"].append(self._name(frame.message_id))
        columns["senders"].append(self._sender(frame.sender_id))
        self._lamports.append(frame.lamport or 0)
        self._sizes.extend(part_sizes(frame.dialect, value))
        self._waku_hashes.append(
            arrival.waku_hash_bytes if frame.kind is FrameKind.CONTENT else b""
        )
        self._add_history(frame)
        bits = self._add_filter(frame)
        self._add_requests(frame, bits)

    def finish(self) -> ChannelDigest:
        """The digest of all frames added."""
        packed = {name: column.tobytes() for name, column in self._columns.items()}
        return ChannelDigest(
            partition=self._partition,
            lamports=self._lamports.tobytes(),
            names=[name for name, _, _ in self._names],
            name_hints=[hint for _, _, hint in self._names],
            name_senders=self._name_senders.tobytes(),
            sender_names=list(self._senders),
            observer_names=list(self._observers),
            filters=self._filters,
            filter_shapes=self._filter_shapes,
            changes=bytes(self._changes),
            sizes=self._sizes.tobytes(),
            waku_hashes=self._waku_hashes,
            **packed,
        )

    def _name(self, message_id: str, sender_id: str = "", hint: bytes = b"") -> int:
        if len(hint) > LONGEST_HINT:
            hint = b""
        # With the hint: what one frame says must not reach those before it.
        index = self._names.setdefault((message_id, sender_id, hint), len(self._names))
        if index == len(self._name_senders):
            self._name_senders.append(self._sender(sender_id))
        return index

    def _sender(self, sender_id: str) -> int:
        return self._senders.setdefault(sender_id, len(self._senders))

    def _add_history(self, frame: Frame) -> None:
        history = self._columns["history"]
        for entry in frame.causal_history:
            if not entry.message_id:
                # A stranger may send it; it names nothing.
                continue
            history.append(
                self._name(entry.message_id, entry.sender_id, entry.retrieval_hint)
            )
        self._columns["history_ends"].append(len(history))

    def _add_requests(self, frame: Frame, bits: Filter | None) -> None:
        requests = self._columns["requests"]
        # One request per frame and id, however often the frame repeats it.
        for message_id in dict.fromkeys(e.message_id for e in frame.repair_request):
            if not message_id:
                continue
            requests.append(self._name(message_id))
            held = bits is not None and bits.contains(message_id)
            self._columns["request_held"].append(held)
        self._columns["request_ends"].append(len(requests))

    def _add_filter(self, frame: Frame) -> Filter | None:
        columns = self._columns
        bits = _usable_filter(frame)
        if bits is None:
            columns["filter_kinds"].append(_NO_FILTER)
            columns["bits_set"].append(0)
        else:
            columns["bits_set"].append(
                count_set_bits(bits.dialect, bits.bits, bits.m_bits)
            )
            self._add_filter_bits(bits)
        columns["change_ends"].append(len(columns["positions"]))
        return bits

    def _add_filter_bits(self, filter_: Filter) -> None:
        """Append a filter, whole or as what differs from the one before it."""
        columns = self._columns
        bits = np.frombuffer(filter_.bits, dtype=np.uint8)
        shape = (filter_.dialect, filter_.m_bits, filter_.k, len(bits))
        last, self._last_filter = self._last_filter, (shape, bits)
        if last is not None and last[0] == shape:
            positions = np.flatnonzero(last[1] != bits)
            # A changed byte costs nine bytes here, a whole filter one each.
            if len(positions) * 9 < len(bits):
                columns["filter_kinds"].append(_CHANGED_FILTER)
                columns["positions"].frombytes(positions.astype(np.int64).tobytes())
                self._changes += bits[positions].tobytes()
                return
        columns["filter_kinds"].append(_WHOLE_FILTER)
        self._filters.append(bytes(filter_.bits))
        self._filter_shapes += (filter_.m_bits, filter_.k)


def _usable_filter(frame: Frame) -> Filter | None:
    """The frame's filter; None if it has none or its size cannot be known."""
    if not frame.bloom_filter:
        return None
    try:
        bits, m_bits, k = filter_bits(frame.dialect, frame.bloom_filter)
    except BloomError:
        return None
    return Filter(frame.dialect, m_bits, k, bits, 0)


def frames_of(digest: ChannelDigest) -> Iterator[SeenFrame]:
    """The frames of a digest in offset order, each with its filter restored."""
    columns = {
        name: np.frombuffer(getattr(digest, name), dtype=np.int64).tolist()
        for name in _INT_COLUMNS
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
            kind=_KINDS[kind],
            dialect=_DIALECTS[dialect],
            sender=senders[columns["senders"][row]],
            lamport=lamports[row],
            named=names[columns["ids"][row]],
            history=history[history_from:history_to],
            requests=requests[requests_from:requests_to],
            filter=next(filters),
            sizes=PartSizes(*sizes[row]),
            waku_hash_bytes=digest.waku_hashes[row],
        )
        history_from, requests_from = history_to, requests_to


def _filters_of(
    digest: ChannelDigest, columns: dict[str, list[int]]
) -> Iterator[Filter | None]:
    whole = iter(zip(digest.filters, *[iter(digest.filter_shapes)] * 2, strict=True))
    changed_from = 0
    bits, m_bits, k = bytearray(), 0, 0
    dialects = columns["kinds"]
    for row, kind in enumerate(columns["filter_kinds"]):
        changed_to = columns["change_ends"][row]
        if kind == _NO_FILTER:
            yield None
            continue
        if kind == _WHOLE_FILTER:
            packed, m_bits, k = next(whole)
            bits = bytearray(packed)
        for change in range(changed_from, changed_to):
            bits[columns["positions"][change]] = digest.changes[change]
        changed_from = changed_to
        yield Filter(
            _DIALECTS[dialects[row] % 2], m_bits, k, bits, columns["bits_set"][row]
        )
