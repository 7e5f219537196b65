"""Stored bytes that show whether they are whole: version, checksum, MessagePack.

One version byte, a checksum (CRC-32, four bytes), then MessagePack.
"""

from __future__ import annotations

from zlib import crc32

from sds_core.message_channel.errors import SnapshotError

_BEGIN = 5


def seal(version: int, packed: bytes) -> bytes:
    """Return MessagePack with version and checksum in front."""
    return bytes([version]) + _checksum(packed) + packed


def unseal(version: int, blob: bytes) -> memoryview:
    """Return the MessagePack of what `seal` returned.

    Raises:
        SnapshotError: The bytes are damaged, or of another version.
    """
    if not blob:
        detail = "it is empty"
        raise SnapshotError(detail)
    if blob[0] != version:
        detail = f"it has version {blob[0]}, this program reads {version}"
        raise SnapshotError(detail)
    packed = memoryview(blob)[_BEGIN:]
    if blob[1:_BEGIN] != _checksum(packed):
        detail = "its checksum is wrong: it is damaged, or cut off"
        raise SnapshotError(detail)
    return packed


def _checksum(packed: bytes | memoryview) -> bytes:
    return crc32(packed).to_bytes(_BEGIN - 1, "big")
