"""The versioned form in which a view lies in the state store.

``length of totals (4 bytes, big-endian) | totals | state``, both MessagePack. The
totals come first so that an exporter can be primed by reading only them, without
decoding any view.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

VERSION = 3
"""Written by this release; every version from 1 on can be read.

Version 3 differs from 2 by a field at the end, which a release that writes 2 could read
over: it would drop the minutes that end meanwhile, unseen. So it is to refuse.
"""

LENGTH_BYTES = 4

Totals = TypeVar("Totals")
State = TypeVar("State")

_ENCODER = msgspec.msgpack.Encoder()


class UnknownBlobVersion(ValueError):
    """A checkpoint was written by a newer release.

    Attributes:
        version: The version found.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(
            f"the checkpoint holds state of version {version}, this release reads "
            f"up to {VERSION}: run the release that wrote it, or a newer one"
        )


def pack(totals: Any, state: Any) -> bytes:
    """The blob of a view's totals and state."""
    head = _ENCODER.encode(totals)
    return len(head).to_bytes(LENGTH_BYTES, "big") + head + _ENCODER.encode(state)


def split(version: int, data: bytes) -> tuple[bytes, memoryview]:
    """The packed totals and the packed state of a blob.

    Raises:
        UnknownBlobVersion: A newer release made it.
    """
    if version > VERSION:
        raise UnknownBlobVersion(version)
    head = totals_part(data)
    return head, memoryview(data)[LENGTH_BYTES + len(head) :]


def unpack(
    version: int, data: bytes, totals: type[Totals], state: type[State]
) -> tuple[Totals, State]:
    """The totals and the state of a blob whose state is the same in every version.

    Raises:
        UnknownBlobVersion: A newer release made it.
    """
    head, rest = split(version, data)
    return unpack_totals(head, totals), msgspec.msgpack.decode(rest, type=state)


def totals_part(data: bytes) -> bytes:
    """The packed totals of a blob, or of as much of it as holds them."""
    length = int.from_bytes(data[:LENGTH_BYTES], "big")
    return data[LENGTH_BYTES : LENGTH_BYTES + length]


def unpack_totals(head: bytes, totals: type[Totals]) -> Totals:
    """Totals from what `totals_part` gave."""
    return msgspec.msgpack.decode(head, type=totals)
