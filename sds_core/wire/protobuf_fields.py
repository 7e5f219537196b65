"""Splits any protobuf message into its fields, without a schema.

Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
"""Wire types that can be read; groups (3 and 4) are obsolete, and raise an error."""

_LONGEST_VARINT = 10
_FIXED = {FIXED64: 8, FIXED32: 4}


class Field(NamedTuple):
    """One field in its wire form.

    Attributes:
        start: Offset of the field's tag.
        value: For a varint, the number; for the other wire types, the bytes.
    """

    number: int
    wire_type: int
    start: int
    value: int | bytes


@dataclass(eq=False, repr=False)
class BrokenProtobuf(ValueError):
    """The field at `offset` is not valid protobuf."""

    offset: int
    detail: str

    def __str__(self) -> str:
        """Return the offset and the error as text."""
        return f"at offset {self.offset}: {self.detail}"


def protobuf_fields(message: bytes) -> Iterator[Field]:
    """Yield the fields of a message in wire order; nested messages stay bytes.

    Raises:
        BrokenProtobuf: A field is invalid; the valid fields before this field are
            yielded first.
    """
    position = 0
    while position < len(message):
        start = position
        tag, position = _varint(message, position, start)
        number, wire_type = tag >> 3, tag & 7
        if not number:
            raise BrokenProtobuf(start, "a field has number 0, which is not allowed")
        value: int | bytes
        if wire_type == VARINT:
            value, position = _varint(message, position, start)
        else:
            if wire_type == LENGTH_DELIMITED:
                length, position = _varint(message, position, start)
            elif wire_type in _FIXED:
                length = _FIXED[wire_type]
            else:
                detail = (
                    f"field {number} has wire type {wire_type}, which is not supported"
                )
                raise BrokenProtobuf(start, detail)
            rest = len(message) - position
            if length > rest:
                detail = (
                    f"field {number} needs {length} bytes, but only {rest} are left"
                )
                raise BrokenProtobuf(start, detail)
            value = message[position : position + length]
            position += length
        yield Field(number, wire_type, start, value)


def _varint(message: bytes, position: int, start: int) -> tuple[int, int]:
    number = 0
    for index, byte in enumerate(message[position : position + _LONGEST_VARINT]):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return number, position + index + 1
    if len(message) - position < _LONGEST_VARINT:
        raise BrokenProtobuf(start, "the message ends within a number")
    raise BrokenProtobuf(start, "a number has more than ten bytes")
