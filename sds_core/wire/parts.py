"""Counts the bytes of each part of a frame (docs/figures.md, 9)."""

from __future__ import annotations

from typing import NamedTuple

from sds_core.native import Bytes, native
from sds_core.wire.frame import Dialect

_CONTENT, _HISTORY, _BLOOM, _REPAIR, _OTHER = range(5)

# Each key is the tag of a length-delimited field: field number << 3 | wire type 2.
# proto/sds_spec.proto and proto/sds_nim.proto define the field numbers.
_PARTS = {
    Dialect.SPEC: {
        11 << 3 | 2: _HISTORY,
        12 << 3 | 2: _BLOOM,
        13 << 3 | 2: _REPAIR,
        20 << 3 | 2: _CONTENT,
    },
    Dialect.NIM: {
        3 << 3 | 2: _HISTORY,
        5 << 3 | 2: _CONTENT,
        6 << 3 | 2: _BLOOM,
        13 << 3 | 2: _REPAIR,
    },
}

_MOST_FIELDS = 2_000
"""Maximum number of top-level fields that are counted.

Each history entry is a top-level field.
"""

_VARINT, _FIXED64, _LENGTH_DELIMITED, _START_GROUP, _END_GROUP, _FIXED32 = range(6)


class PartSizes(NamedTuple):
    """Number of bytes of each part of a frame; a part consists of top-level fields.

    The bytes of a field include its tag, its length prefix and its payload. `other`
    counts all bytes outside the other parts, so the sum of all parts is the length of
    the frame.
    """

    content: int
    history: int
    bloom: int
    repair: int
    other: int


@native
def part_sizes(dialect: Dialect, value: bytes) -> PartSizes:
    """Return the bytes of each part of a frame.

    If `decode` does not accept the frame, the result is undefined. Only the first
    `_MOST_FIELDS` fields are assigned to parts; all later fields count as `other`.
    """
    part_of = _PARTS[dialect]
    sizes = [0] * 5
    read: Bytes = value
    position: int = 0
    end: int = len(value)
    depth: int = 0
    fields_left: int = _MOST_FIELDS
    while position < end and fields_left:
        fields_left -= 1
        start: int = position
        tag: int = read[position]
        position += 1
        if tag >= 0x80:
            tag, position = _long_varint(value, position, tag)
        wire_type: int = tag & 7
        if wire_type == _LENGTH_DELIMITED:
            length: int = read[position]
            position += 1
            if length >= 0x80:
                length, position = _long_varint(value, position, length)
            position += length
            if not depth:
                sizes[part_of.get(tag, _OTHER)] += position - start
        elif wire_type == _VARINT:
            while read[position] >= 0x80:
                position += 1
            position += 1
        elif wire_type == _FIXED64:
            position += 8
        elif wire_type == _FIXED32:
            position += 4
        else:
            # A group begins or ends. Groups are obsolete, but valid protobuf.
            depth += 1 if wire_type == _START_GROUP else -1
    sizes[_OTHER] = end - sum(sizes[:_OTHER])
    return PartSizes(*sizes)


def _long_varint(value: bytes, position: int, first: int) -> tuple[int, int]:
    """Return the number that a varint encodes, and the position after the varint.

    `first` is the first byte of the varint, and `position` is that of its second byte.
    """
    number, shift = first & 0x7F, 7
    while True:
        byte = value[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            # Protobuf uses the low 64 bits of a length or tag, and ignores higher bits.
            return number & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
