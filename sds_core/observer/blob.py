"""The versioned form in which a view lies in the state store.

``length of totals (4 bytes, big-endian) | totals | state``, both MessagePack. The
totals come first so that an exporter can be primed by reading only them, without
decoding any view. The version is stored beside the blob; each kind of view counts its
own (`Kind.blob_version`).
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

LENGTH_BYTES = 4

Totals = TypeVar("Totals")
State = TypeVar("State")

_ENCODER = msgspec.msgpack.Encoder()


class UnknownBlobVersion(ValueError):
    """A checkpoint was written by a newer release.

    Attributes:
        version: The version found.
        newest: The newest version that this release reads.
    """

    def __init__(self, version: int, newest: int) -> None:
        self.version = version
        self.newest = newest
        super().__init__(
            f"the checkpoint holds state of version {version}, this release reads "
            f"up to {newest}: run the release that wrote it, or a newer one"
        )


def check_version(version: int, newest: int) -> None:
    """Check that this release can read a blob.

    Args:
        version: Version in which the blob was stored.
        newest: Newest version of the view's kind; every version from 1 on is readable.

    Raises:
        UnknownBlobVersion: `version` is newer.
    """
    if version > newest:
        raise UnknownBlobVersion(version, newest)


def pack(totals: Any, state: Any) -> bytes:
    """The blob of a view's totals and state."""
    head = _ENCODER.encode(totals)
    return len(head).to_bytes(LENGTH_BYTES, "big") + head + _ENCODER.encode(state)


def split(data: bytes) -> tuple[bytes, memoryview]:
    """Return the packed totals and the packed state of a blob."""
    head = totals_part(data)
    return head, memoryview(data)[LENGTH_BYTES + len(head) :]


def unpack(
    data: bytes, totals: type[Totals], state: type[State]
) -> tuple[Totals, State]:
    """Return the totals and the state of a blob, if both are plain structs."""
    head, rest = split(data)
    return unpack_totals(head, totals), msgspec.msgpack.decode(rest, type=state)


def totals_part(data: bytes) -> bytes:
    """The packed totals of a blob, or of as much of it as holds them."""
    length = int.from_bytes(data[:LENGTH_BYTES], "big")
    return data[LENGTH_BYTES : LENGTH_BYTES + length]


def unpack_totals(head: bytes, totals: type[Totals]) -> Totals:
    """Totals from what `totals_part` gave."""
    return msgspec.msgpack.decode(head, type=totals)
