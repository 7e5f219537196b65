"""Packs the frames of one channel in a chunk into one compact digest.

Moving whole frames between processes is expensive: most of their bytes are repeated
history and an 18 kB bloom filter. A `ChannelDigest` has what the view needs, as packed
columns: each id once per chunk, and each filter as the bytes that differ from the
previous filter. Message content and unknown fields are left out. `seen_frames` unpacks
it.
"""

from __future__ import annotations

import enum
from array import array

import msgspec
import numpy as np

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.record import Arrival
from sds_core.observer.sds.frame_filter import Filter, usable_filter
from sds_core.observer.sds.limits import MOST_HISTORY, MOST_REQUESTS
from sds_core.wire import (
    MAX_ID_CHARACTERS,
    Dialect,
    Frame,
    FrameKind,
    count_set_bits,
    part_sizes,
)

LONGEST_HINT = 1_024
"""Most bytes of a retrieval hint; js-waku uses 32. Longer hints are dropped."""

KINDS = tuple(FrameKind)
DIALECTS = tuple(Dialect)
_KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}
_DIALECT_CODES = {dialect: code for code, dialect in enumerate(DIALECTS)}


class FilterCode(enum.IntEnum):
    """How a frame's filter is packed."""

    NONE = 0
    WHOLE = 1
    CHANGED = 2
    """The bytes that differ from the previous filter."""


class ChannelDigest(msgspec.Struct, array_like=True):
    """Frames of one channel in one chunk of one partition, in order of offsets.

    Columns are packed native integers, ``int64`` if no other type is given. For n
    frames, h history entries, r repair requests and d distinct names of ids:

    Attributes:
        partition: Kafka partition of the chunk.
        offsets, times, clocks, seqs, hashes, contents: Shape (n,); see `Arrival`.
            `contents` are fingerprints of whole frames.
        observers: Index into `observer_names`, shape (n,).
        kinds: Kind and dialect codes, ``kind * 2 + dialect``, shape (n,).
        ids, senders: Index into `names` and `sender_names`, shape (n,).
        lamports: ``uint64``; 0 if the kind has none, shape (n,).
        history_ends, request_ends: Ends of each frame's slice, shape (n,).
        history, requests: Index into `names`, shapes (h,) and (r,).
        request_held: 1 if the requester's own filter holds the id, shape (r,).
        names: Message ids, each once for every combination of sender and retrieval
            hint that it is named with, shape (d,).
        name_senders: Sender of each of `names`, index into `sender_names`, shape (d,).
        sender_names: Participant ids; the first is empty: an unknown sender.
        observer_names: Tap ids.
        filter_kinds: `FilterCode` of each frame, shape (n,).
        filters: Bits of each whole filter, in order.
        filter_shapes: ``m_bits, k`` of each whole filter, flat.
        bits_set: Number of ones in each frame's filter, shape (n,).
        change_ends: Ends of each frame's slice of `positions`, shape (n,).
        positions, changes: Positions of the bytes that differ, and the new bytes.
        sizes: Bytes of each frame by part, ``uint32``, shape (n, 5); see `PartSizes`.
        waku_hashes: Waku message hash of each content frame; empty if unknown and for
            other kinds, shape (n,).
        name_hints: Retrieval hint of each of `names`; empty if it has none, shape
            (d,).
        history_left_out, requests_left_out: Number of entries and requests of each
            frame that limits leave out, shape (n,).
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
    history_left_out: bytes
    requests_left_out: bytes

    def to_bytes(self) -> bytes:
        """MessagePack bytes, to send from the reader to the view."""
        return _ENCODER.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> ChannelDigest:
        """The digest from the bytes that `to_bytes` returned."""
        return _DECODER.decode(data)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ChannelDigest)


INT_COLUMNS = (
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
    "history_left_out",
    "requests_left_out",
)


class ChannelDigester:
    """Builds the digest of one channel in one chunk of one partition.

    Args:
        partition: Kafka partition of the chunk.
    """

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._columns = {name: array("q") for name in INT_COLUMNS}
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
        # The previous filter: (dialect, m_bits, k, number of bytes) and its bits.
        self._last_filter: tuple[tuple[Dialect, int, int, int], np.ndarray] | None = (
            None
        )

    def add(self, frame: Frame, value: bytes, arrival: Arrival) -> None:
        """Append one frame.

        Args:
            frame: The decoded frame; all frames of a digester have the same channel.
            value: The encoded frame, as it was on the wire.
            arrival: Tap, time and place of the frame's record.
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
        """The digest of all frames that were added."""
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
        # The hint is part of the key: a frame must not get the hint of a later one.
        index = self._names.setdefault((message_id, sender_id, hint), len(self._names))
        if index == len(self._name_senders):
            self._name_senders.append(self._sender(sender_id))
        return index

    def _sender(self, sender_id: str) -> int:
        return self._senders.setdefault(sender_id, len(self._senders))

    def _add_history(self, frame: Frame) -> None:
        history = self._columns["history"]
        left_out = max(0, len(frame.causal_history) - MOST_HISTORY)
        for entry in frame.causal_history[-MOST_HISTORY:]:
            message_id, sender_id = entry.message_id, entry.sender_id
            if not message_id:
                # A hostile sender may send an empty id.
                continue
            if max(len(message_id), len(sender_id)) > MAX_ID_CHARACTERS:
                left_out += 1
                continue
            history.append(self._name(message_id, sender_id, entry.retrieval_hint))
        self._columns["history_ends"].append(len(history))
        self._columns["history_left_out"].append(left_out)

    def _add_requests(self, frame: Frame, bits: Filter | None) -> None:
        requests = self._columns["requests"]
        left_out = max(0, len(frame.repair_request) - MOST_REQUESTS)
        # One request per frame and id, even if the frame repeats the id.
        for message_id in dict.fromkeys(
            entry.message_id for entry in frame.repair_request[:MOST_REQUESTS]
        ):
            if not message_id:
                continue
            if len(message_id) > MAX_ID_CHARACTERS:
                left_out += 1
                continue
            requests.append(self._name(message_id))
            held = bits is not None and bits.contains(message_id)
            self._columns["request_held"].append(held)
        self._columns["request_ends"].append(len(requests))
        self._columns["requests_left_out"].append(left_out)

    def _add_filter(self, frame: Frame) -> Filter | None:
        columns = self._columns
        bits = usable_filter(frame)
        if bits is None:
            columns["filter_kinds"].append(FilterCode.NONE)
            columns["bits_set"].append(0)
        else:
            columns["bits_set"].append(
                count_set_bits(bits.dialect, bits.bits, bits.m_bits)
            )
            self._add_filter_bits(bits)
        columns["change_ends"].append(len(columns["positions"]))
        return bits

    def _add_filter_bits(self, filter_: Filter) -> None:
        """Append a filter: whole, or as the bytes that differ from the previous one."""
        columns = self._columns
        bits = np.frombuffer(filter_.bits, dtype=np.uint8)
        shape = (filter_.dialect, filter_.m_bits, filter_.k, len(bits))
        last, self._last_filter = self._last_filter, (shape, bits)
        if last is not None and last[0] == shape:
            positions = np.flatnonzero(last[1] != bits)
            # A changed byte takes nine bytes, a byte of a whole filter one.
            if len(positions) * 9 < len(bits):
                columns["filter_kinds"].append(FilterCode.CHANGED)
                columns["positions"].frombytes(positions.astype(np.int64).tobytes())
                self._changes += bits[positions].tobytes()
                return
        columns["filter_kinds"].append(FilterCode.WHOLE)
        self._filters.append(bytes(filter_.bits))
        self._filter_shapes += (filter_.m_bits, filter_.k)
