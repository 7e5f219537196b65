"""How the bytes of a frame are divided into parts."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st

from sds_core.wire import (
    BloomFilter,
    Dialect,
    Frame,
    HistoryEntry,
    PartSizes,
    encode,
    part_sizes,
)
from tests.support.properties import CAREFUL
from tests.support.wire.raw import field, varint

NUMBERS = {
    Dialect.SPEC: {"content": 20, "history": 11, "bloom": 12, "repair": 13},
    Dialect.NIM: {"content": 5, "history": 3, "bloom": 6, "repair": 13},
}
"""Field numbers of the parts; all other fields are of "other"."""

LONGEST = 5
"""Bytes of a tag or a length that protobuf accepts; most need one or two."""


class Field(NamedTuple):
    """One field as it lies in a frame."""

    number: int
    wire_type: int
    data: bytes


def padded_varint(value: int, length: int) -> bytes:
    """The number in at least so many bytes, as no library writes it."""
    out = bytearray(varint(value))
    while len(out) < length:
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


@st.composite
def fields(draw: st.DrawFn, depth: int = 0) -> Field:
    """Any field: known or not, in any wire type, with padded tag and length."""
    known = [n for numbers in NUMBERS.values() for n in numbers.values()]
    number = draw(st.sampled_from(known) | st.integers(1, 2**29 - 1))
    wire_type = draw(st.sampled_from((2, 2, 2, 0, 1, 3, 5) if depth < 3 else (2, 0)))
    tag = padded_varint(number << 3 | wire_type, draw(st.integers(1, LONGEST)))
    match wire_type:
        case 0:
            value = draw(st.integers(0, 2**64 - 1))
            payload = padded_varint(value, draw(st.integers(1, 10)))
        case 1:
            payload = draw(st.binary(min_size=8, max_size=8))
        case 2:
            raw = draw(st.binary(max_size=300))
            payload = padded_varint(len(raw), draw(st.integers(1, LONGEST))) + raw
        case 3:
            inner = draw(st.lists(fields(depth + 1), max_size=3))
            payload = b"".join(one.data for one in inner) + varint(number << 3 | 4)
        case _:
            payload = draw(st.binary(min_size=4, max_size=4))
    return Field(number, wire_type, tag + payload)


@CAREFUL
@given(st.sampled_from(Dialect), st.lists(fields(), max_size=8))
def test_any_fields_are_divided_as_protobuf_reads_them(
    dialect: Dialect, drawn: list[Field]
) -> None:
    """Only length-delimited fields outside groups can be parts."""
    value = b"".join(one.data for one in drawn)
    read = UnknownFieldSet(Empty.FromString(value))
    assert [(one.field_number, one.wire_type) for one in read] == [
        (one.number, one.wire_type) for one in drawn
    ]
    expected = dict.fromkeys(PartSizes._fields, 0)
    parts = {number: part for part, number in NUMBERS[dialect].items()}
    for one in drawn:
        part = parts.get(one.number, "other") if one.wire_type == 2 else "other"
        expected[part] += len(one.data)
    assert part_sizes(dialect, value)._asdict() == expected


@pytest.mark.parametrize("dialect", Dialect)
def test_parts_of_a_frame_are_its_fields(dialect: Dialect) -> None:
    """Tag, length and payload of each; ids, sender and lamport are the rest."""
    filter_ = BloomFilter(dialect)
    filter_.add("a")
    frame = Frame.build(
        dialect,
        message_id="m" * 200,
        channel_id="channel",
        sender_id="alice",
        lamport=1_750_000_000_000,
        causal_history=[HistoryEntry("a", b"hint", "bob"), HistoryEntry("b" * 130)],
        bloom_filter=filter_.to_wire(),
        repair_request=[HistoryEntry("c"), HistoryEntry("d", b"", "zoe")],
        content=b"text",
    )
    bare = frame._replace(causal_history=(), repair_request=())
    value = encode(frame)
    sizes = part_sizes(dialect, value)
    assert sum(sizes) == len(value)
    assert sizes.content == len(field(NUMBERS[dialect]["content"], b"text"))
    number = NUMBERS[dialect]["bloom"]
    assert sizes.bloom == len(field(number, frame.bloom_filter))
    without = {
        "history": bare._replace(repair_request=frame.repair_request),
        "repair": bare._replace(causal_history=frame.causal_history),
    }
    for part, other in without.items():
        assert getattr(sizes, part) == len(value) - len(encode(other))
    assert sizes.other == len(encode(bare)) - sizes.content - sizes.bloom


@pytest.mark.parametrize("dialect", Dialect)
def test_field_that_is_repeated_counts_each_time(dialect: Dialect) -> None:
    """Protobuf uses the last, but all of them were sent."""
    number = NUMBERS[dialect]["content"]
    value = field(number, b"one") + field(number, b"") + field(number, b"three")
    assert part_sizes(dialect, value) == PartSizes(len(value), 0, 0, 0, 0)


def test_empty_frame_has_no_parts() -> None:
    """All counts are 0."""
    assert part_sizes(Dialect.SPEC, b"") == PartSizes(0, 0, 0, 0, 0)
