"""Encodes a view as a blob, which the state store keeps.

A blob consists of ``length of totals (4 bytes, big-endian) | totals | state | checksum
(4 bytes, big-endian)``. Totals and state are encoded as MessagePack. The checksum is
the CRC-32 of all bytes before the checksum. The totals come before the state, so that
an exporter can read only the totals at startup.

The version of a blob is not part of the blob, but is stored beside it. Each kind of
view has its own sequence of versions (`Kind.blob_version`). Blobs of early versions
have no checksum (`Kind.checksum_since`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

LENGTH_BYTES = 4
CHECKSUM_BYTES = 4

WRONG_CHECKSUM = "does not match its stored checksum"

Totals = TypeVar("Totals")
State = TypeVar("State")

_ENCODER = msgspec.msgpack.Encoder()


class UnknownBlobVersion(ValueError):
    """The blob was written by a newer release."""

    def __init__(self, version: int, newest: int) -> None:
        self.version = version
        self.newest = newest
        super().__init__(
            f"the checkpoint has state of version {version}, but this release reads "
            f"only versions up to {newest}: run the release that wrote the checkpoint, "
            "or a later release"
        )


class DamagedBlob(ValueError):
    """The blob is damaged: bytes were changed, lost or added after it was written."""


class DamagedDigest(ValueError):
    """A digest is damaged, or was written by another release."""


def check_version(version: int, newest: int) -> None:
    """Check that this release can read blobs of a version: 1 to `newest`.

    Raises:
        UnknownBlobVersion: `version` is newer than `newest`.
    """
    if version > newest:
        raise UnknownBlobVersion(version, newest)


def pack(totals: Any, state: Any) -> bytes:
    """Encode the totals and the state of a view as a blob."""
    blob = bytearray(LENGTH_BYTES)
    _ENCODER.encode_into(totals, blob, LENGTH_BYTES)
    head = len(blob) - LENGTH_BYTES
    blob[:LENGTH_BYTES] = head.to_bytes(LENGTH_BYTES, "big")
    _ENCODER.encode_into(state, blob, len(blob))
    blob += zlib.crc32(blob).to_bytes(CHECKSUM_BYTES, "big")
    return bytes(blob)


@contextmanager
def opened(
    version: int, data: bytes, newest: int, checksum_since: int
) -> Iterator[bytes]:
    """Check a blob; the ``with`` block gets the blob without its checksum.

    The block decodes the blob. If the block raises an error, the blob counts as
    damaged. If a blob has no checksum, changed bytes are detected only if they cannot
    be decoded.

    `newest` and `checksum_since` are `Kind.blob_version` and `Kind.checksum_since`.

    Raises:
        UnknownBlobVersion: `version` is newer than `newest`.
        DamagedBlob: The checksum is wrong, or the ``with`` block raised an error other
            than `MemoryError`.
    """
    check_version(version, newest)
    body = verified(data) if version >= checksum_since else data
    try:
        yield body
    except MemoryError:
        raise
    except Exception as error:
        message = f"cannot be decoded ({type(error).__name__}: {error!s:.80})"
        raise DamagedBlob(message) from error


def verified(data: bytes) -> bytes:
    """Check the checksum of a blob, and return the blob without the checksum.

    Raises:
        DamagedBlob: The checksum does not match the other bytes.
    """
    body, checksum = data[:-CHECKSUM_BYTES], data[-CHECKSUM_BYTES:]
    if zlib.crc32(body).to_bytes(CHECKSUM_BYTES, "big") != checksum:
        raise DamagedBlob(WRONG_CHECKSUM)
    return body


def split(body: bytes) -> tuple[bytes, memoryview]:
    """Split a blob without its checksum into the encoded totals and encoded state."""
    head = totals_part(body)
    return head, memoryview(body)[LENGTH_BYTES + len(head) :]


def unpack(
    body: bytes, totals: type[Totals], state: type[State]
) -> tuple[Totals, State]:
    """Decode the totals and the state from a blob without its checksum.

    `totals` and `state` are types of structs.
    """
    head, rest = split(body)
    return unpack_totals(head, totals), msgspec.msgpack.decode(rest, type=state)


def totals_part(data: bytes) -> bytes:
    """The encoded totals of a blob; `data` may lack the bytes after the totals."""
    length = int.from_bytes(data[:LENGTH_BYTES], "big")
    return data[LENGTH_BYTES : LENGTH_BYTES + length]


def pack_totals(totals: Any) -> bytes:
    """Encode totals in the form that `totals_part` returns."""
    return _ENCODER.encode(totals)


def unpack_totals(head: bytes, totals: type[Totals]) -> Totals:
    """Decode totals that `totals_part` returned."""
    return msgspec.msgpack.decode(head, type=totals)
