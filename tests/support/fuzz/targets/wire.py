"""Decoders of what participants send: frames, filters, segments; and `inspect`."""

from __future__ import annotations

import json
import pickle
from random import Random

from sds_core.observer.record import RawRecord
from sds_core.observer.sds.frame_filter import usable_filter
from sds_core.text import printable
from sds_core.wire import (
    BloomError,
    BloomFilter,
    BloomParameters,
    Dialect,
    Frame,
    UndecodableFrame,
    count_set_bits,
    decode,
    encode,
    part_sizes,
)
from sds_core.wire.proto import sds_nim_pb2
from sds_core.wire.segment_header import read_segment_header
from streaming.cli.inspection import inspect_record
from streaming.cli.inspection_text import inspection_facts
from tests.support.frames import START_MS, FrameFactory, bloom
from tests.support.fuzz.errors import check_text
from tests.support.fuzz.mutation import changed_bytes, changed_protobuf
from tests.support.fuzz.target import Target
from tests.support.wire.raw import entry, field
from tests.support.wire.values import CANONICAL

_SMALL = BloomParameters(capacity=20, error_rate=0.01)
_HASH = bytes(range(32))


def genuine_frames() -> list[bytes]:
    """Frames of every kind, in both dialects, with all fields in use."""
    spec, nim = FrameFactory("channel"), FrameFactory("channel", Dialect.NIM)
    small = BloomFilter(Dialect.NIM, _SMALL)
    small.add_all(["m1", "m2"])
    made = [
        spec.content("m1", "alice", 5, history=[("m0", "bob")], requests=["m2"]),
        spec.sync("bob", 6, history=["m1"], filter_=bloom(["m1"])),
        spec.ephemeral("carol"),
        nim.content("m1", "", 5, history=["m0"], filter_=small.to_wire()),
        nim.sync("bob", 6, history=["m1"], requests=[("m2", "bob")]),
        nim.ephemeral("carol"),
        nim.sync("carol", 7, filter_=BloomFilter(Dialect.NIM).to_wire()),
    ]
    # The bare ids of nim-sds before its version 0.2.
    old = field(1, "m9") + field(2, 5) + field(3, "m8") + field(3, "m\n7")
    return [
        *CANONICAL.values(),
        *(encode(frame) for frame in made),
        old + field(4, "ch") + field(5, b"text"),
    ]


def genuine_segments() -> list[bytes]:
    """Segments in the three layouts."""
    lip = field(1, _HASH) + field(2, 1) + field(3, 2) + field(4, b"share")
    status = field(1, _HASH) + field(4, b"share") + field(5, 0) + field(6, 1)
    parity = lip + field(5, 0) + field(6, 1) + field(7, 1)
    nim = b"".join(
        field(number, value)
        for number, value in ((1, _HASH), (2, 9), (3, 0), (4, 2), (5, 1), (6, 0))
    )
    return [lip, status, lip + field(7, 0), parity, nim + field(7, b"s")]


def _changed_frame(random: Random, value: bytes, other: bytes) -> bytes:
    """A frame with changed fields; one in ten with changed bytes."""
    if random.random() < 0.1:
        return changed_bytes(random, value, other)
    if random.random() < 0.05:
        return changed_protobuf(random, value + other)
    return changed_protobuf(random, value)


def _check_frame(value: bytes) -> bool:
    """A frame that round-trips, with a usable filter or none; or the reason why not."""
    try:
        frame = decode(value)
    except UndecodableFrame as error:
        _check_error(error)
        return False
    assert frame.message_id
    assert frame.channel_id
    plain = frame.detached()
    assert decode(encode(plain)) == plain
    assert hash(plain) == hash(frame)
    sizes = part_sizes(frame.dialect, value)
    assert sum(sizes) == len(value)
    assert min(sizes) >= 0
    _check_filter(frame)
    return True


def _check_error(error: Exception) -> None:
    """It survives the way from a worker to the driver."""
    check_text(str(error))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert str(again) == str(error)


def _check_filter(frame: Frame) -> None:
    usable = usable_filter(frame)
    try:
        filter_ = BloomFilter.from_wire(frame.dialect, frame.bloom_filter)
    except BloomError as error:
        check_text(str(error))
        assert usable is None
        return
    assert usable is not None
    assert (usable.m_bits, usable.k) == (filter_.m_bits, filter_.k)
    if frame.dialect is Dialect.NIM:
        # The reader parses what follows the bits, and cuts off words that are not in
        # use; this one parses everything.
        parsed = sds_nim_pb2.BloomFilter.FromString(frame.bloom_filter)
        in_use = 8 * (usable.m_bits // 64 + 1)
        assert bytes(usable.bits) == parsed.bits[:in_use]
        assert (usable.m_bits, usable.k) == (parsed.m_bits, parsed.k)
    assert usable.contains(frame.message_id) == filter_.contains(frame.message_id)
    set_bits = count_set_bits(usable.dialect, usable.bits, usable.m_bits)
    assert set_bits == filter_.bits_set() <= filter_.m_bits
    assert 0 <= filter_.false_positive_rate() <= 1
    assert filter_.estimated_ids() >= 0
    filter_.add(frame.message_id)
    assert filter_.contains(frame.message_id)
    again = BloomFilter.from_wire(frame.dialect, filter_.to_wire())
    assert again.bits == filter_.bits


def _check_segment(value: bytes) -> bool:
    """A header whose numbers fit each other, or none."""
    header = read_segment_header(value)
    if header is None:
        return False
    assert header.layouts
    assert len(header.payload_hash) == len(_HASH)
    count = header.parity_count if header.is_parity else header.data_count
    assert count is not None
    assert 0 <= header.index < count <= 256
    assert len(header.payload) < len(value)
    return True


def _check_inspection(value: bytes) -> bool:
    """Any value can be printed, in lines that no stranger's text can forge."""
    found = inspect_record(RawRecord(0, 7, START_MS, None, value, ()), START_MS)
    assert json.loads(json.dumps(found)) == found
    for word, text in inspection_facts(found):
        assert text == printable(text), word
    return found["frame"] is not None


def _genuine_content() -> list[bytes]:
    """Frames that hold segments, and one with a history."""
    begin = field(2, "m") + field(3, "ch") + field(10, 1)
    history = begin + field(11, entry("n", _HASH, "a"))
    return [history, *(begin + field(20, one) for one in genuine_segments())]


TARGETS = (
    Target("frame", genuine_frames, _changed_frame, _check_frame, 10_000, share=2),
    Target("segment", genuine_segments, _changed_frame, _check_segment, 10_000),
    Target(
        "inspection",
        lambda: [*genuine_frames(), *_genuine_content()],
        _changed_frame,
        _check_inspection,
    ),
)
