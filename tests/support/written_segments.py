"""Segments as their senders write them, by hand: fields in the order of the numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from sds_core.wire.segment_header import payload_hash

NIM_SHARE = 64
"""Length of a data segment of nim-segmentation; a multiple of 64."""


def unchecked_hash(number: int) -> bytes:
    """Bytes that may be the hash of a payload, of which nobody sees all bytes."""
    return bytes([0x80 | number % 128, number // 128]) * 16


def written(*fields: tuple[int, int | bytes]) -> bytes:
    """Return fields as protobuf; numbers of 0 are left out, as the libraries do."""
    parts = []
    for number, value in fields:
        if isinstance(value, bytes):
            parts += [_varint(number << 3 | 2), _varint(len(value)), value]
        elif value:
            parts += [_varint(number << 3), _varint(value)]
    return b"".join(parts)


def nim_segments(
    number: int,
    data_count: int,
    parity_count: int = 0,
    last: int = 10,
    share: int = NIM_SHARE,
) -> list[bytes]:
    """Return the segments of a payload in the layout of nim-segmentation.

    Args:
        number: Number of the payload.
        data_count: Number of data segments.
        parity_count: Number of parity segments, which come last.
        last: Bytes in the last data segment.
        share: Bytes in every other one.
    """
    whole = share * (data_count - 1) + last
    lengths = [share] * (data_count - 1) + [last] + [share] * parity_count
    shares = [bytes(length) for length in lengths]
    if data_count == 1:
        shares[0] = number.to_bytes(last)
    places = itertools.chain(range(data_count), range(parity_count))
    return [
        written(
            (1, _hash(number, shares[:data_count])),
            (2, whole),
            (3, place),
            (4, data_count),
            (5, parity_count),
            (6, int(at >= data_count)),
            (7, own),
        )
        for at, (place, own) in enumerate(zip(places, shares, strict=True))
    ]


def lip_segments(number: int, data_count: int, parity_count: int = 0) -> list[bytes]:
    """Return the segments of a payload in the layout of LIP-243."""
    shares = [b"share %d" % number] * data_count
    whole_hash = _hash(number, shares)
    data = [
        written((1, whole_hash), (2, i), (3, data_count), (4, own))
        for i, own in enumerate(shares)
    ]
    return data + list(_lip_parity(whole_hash, data_count, parity_count))


def status_segments(number: int, data_count: int, parity_count: int) -> list[bytes]:
    """Return the segments of a payload in the layout of status-go."""
    data = lip_segments(number, data_count)
    parity = [
        written((1, unchecked_hash(number)), (4, b"share"), (5, i), (6, parity_count))
        for i in range(parity_count)
    ]
    return data + parity


def _hash(number: int, shares: Sequence[bytes]) -> bytes:
    """The hash of a payload: the true one only if it is one segment."""
    return payload_hash(shares[0]) if len(shares) == 1 else unchecked_hash(number)


def _lip_parity(
    whole_hash: bytes, data_count: int, parity_count: int
) -> Iterable[bytes]:
    for i in range(parity_count):
        yield written(
            (1, whole_hash),
            (3, data_count),
            (4, b"share"),
            (5, i),
            (6, parity_count),
            (7, 1),
        )


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
