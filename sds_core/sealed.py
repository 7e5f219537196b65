"""Stored bytes with a checksum, which shows whether they are complete.

One version byte, a checksum (CRC-32, four bytes, big-endian), then MessagePack.
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
        version: Version of the encoding, in [0, 256).
        error: Makes an error from a line of text, for bytes that cannot be decoded.
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
            Exception: The result of `error`. The bytes are damaged, of another version,
                or another value.
        """
        if not blob:
            raise self._error("it is empty")
        if blob[0] != self._version:
            text = f"it has version {blob[0]}, this program reads {self._version}"
            raise self._error(text)
        packed = memoryview(blob)[_HEAD_BYTES:]
        if blob[1:_HEAD_BYTES] != _checksum(packed):
            raise self._error("its checksum is wrong: it is damaged, or cut off")
        try:
            return self._decoder.decode(packed)
        except msgspec.DecodeError as error:
            raise self._error(str(error)) from error


def _checksum(packed: bytes | memoryview) -> bytes:
    return crc32(packed).to_bytes(_CHECKSUM_BYTES, "big")
