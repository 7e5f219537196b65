"""Counts the fields of a message before it is parsed.

A parsed message of many empty items takes up to 50 times the memory of its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sds_core.prolly.errors import BadFrame, LimitExceeded
from sds_core.wire.protobuf_fields import BrokenProtobuf, protobuf_fields


def check_fields(message: bytes, most: int, nested: int | None = None) -> None:
    """Check that an encoded message has at most `most` fields.

    If `nested` is given, the fields of the messages in the field with this number count
    too.

    Raises:
        LimitExceeded: The message has more fields.
        BadFrame: A field is invalid.
    """
    try:
        count = sum(1 for _ in islice(_fields(message, nested), most + 1))
    except BrokenProtobuf as error:
        raise BadFrame(str(error)) from error
    if count > most:
        text = f"a message has more than {most} fields"
        raise LimitExceeded(text)


def _fields(message: bytes, nested: int | None) -> Iterator[int]:
    for field in protobuf_fields(message):
        yield field.number
        if field.number == nested and isinstance(field.value, bytes):
            yield from _fields(field.value, None)
