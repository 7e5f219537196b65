"""Stored bytes that show whether they are whole.

One version byte, a checksum (CRC-32, four bytes, big-endian), then MessagePack.
"""

from __future__ import annotations

from typing import Any, TypeVar
from zlib import crc32

import msgspec

_CHECKSUM_BYTES = 4
_HEAD_BYTES = 1 + _CHECKSUM_BYTES

_Value = TypeVar("_Value")


class BrokenSeal(ValueError):
    """The bytes are damaged, or not what this program reads; the text says which."""


def seal(version: int, value: Any) -> bytes:
    """Return a value as bytes.

    Args:
        version: Version of its form, in [0, 256).
        value: Anything that msgspec writes as MessagePack.
    """
    packed = msgspec.msgpack.encode(value)
    return bytes([version]) + _checksum(packed) + packed


def unseal(
    version: int, blob: bytes, decoder: msgspec.msgpack.Decoder[_Value]
) -> _Value:
    """Read what `seal` returned.

    Raises:
        BrokenSeal: The bytes are damaged, of another version, or another value.
    """
    if not blob:
        message = "it is empty"
        raise BrokenSeal(message)
    if blob[0] != version:
        message = f"it has version {blob[0]}, this program reads {version}"
        raise BrokenSeal(message)
    packed = memoryview(blob)[_HEAD_BYTES:]
    if blob[1:_HEAD_BYTES] != _checksum(packed):
        message = "its checksum is wrong: it is damaged, or cut off"
        raise BrokenSeal(message)
    try:
        return decoder.decode(packed)
    except msgspec.DecodeError as error:
        raise BrokenSeal(str(error)) from error


def _checksum(packed: bytes | memoryview) -> bytes:
    return crc32(packed).to_bytes(_CHECKSUM_BYTES, "big")
