"""Encodes values for storage, with a checksum that detects damage.

Format: version (1 byte), CRC-32 (4 bytes, big-endian), MessagePack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from zlib import crc32

import msgspec

_CHECKSUM_BYTES = 4
_HEAD_BYTES = 1 + _CHECKSUM_BYTES

_Value = TypeVar("_Value")


class Seal(Generic[_Value]):
    """Encodes values of one type as bytes, and decodes them.

    Args:
        version: Version of the encoded form, in [0, 256).
        error: Function that takes a line of text and returns the error that `unpack`
            raises for invalid bytes.
    """

    def __init__(
        self, version: int, kind: type[_Value], error: Callable[[str], Exception]
    ) -> None:
        self._version = version
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._error = error

    def pack(self, value: _Value) -> bytes:
        """Return a value as bytes."""
        packed = msgspec.msgpack.encode(value)
        return bytes([self._version]) + _checksum(packed) + packed

    def unpack(self, blob: bytes) -> _Value:
        """Decode the result of `pack`.

        Raises:
            Exception: The bytes are damaged, have another version, or contain a value
                of another type. `error` returns the exception.
        """
        if not blob:
            raise self._error("the data is empty")
        if blob[0] != self._version:
            text = (
                f"the data has version {blob[0]}, but this program reads version "
                f"{self._version}"
            )
            raise self._error(text)
        packed = memoryview(blob)[_HEAD_BYTES:]
        if blob[1:_HEAD_BYTES] != _checksum(packed):
            raise self._error(
                "the checksum is wrong, because the data is damaged or cut off"
            )
        try:
            return self._decoder.decode(packed)
        except msgspec.DecodeError as error:
            raise self._error(str(error)) from error


def _checksum(packed: bytes | memoryview) -> bytes:
    return crc32(packed).to_bytes(_CHECKSUM_BYTES, "big")
