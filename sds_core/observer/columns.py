"""Integers and sets packed for the state, where every byte is kept per message."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

_WIDTHS = tuple(np.dtype(name) for name in ("<u1", "<u2", "<u4", "<u8"))

_BASE_BYTES = 8


def pack_ints(values: Sequence[int], *, signed: bool = False) -> bytes:
    """Pack integers as their distances from the least, in the fewest bytes each.

    Args:
        values: In [0, 2**64), or in [-2**63, 2**63) if `signed`.
        signed: Which of the two.

    Returns:
        Nothing for no values; else the width's number (1 byte), the least (8 bytes,
        little-endian) and the distances, shape (n,).
    """
    if not values:
        return b""
    column = np.array(values, dtype=np.int64 if signed else np.uint64)
    base, span = int(column.min()), int(column.max()) - int(column.min())
    code = next(i for i, width in enumerate(_WIDTHS) if span < 1 << 8 * width.itemsize)
    # Differences wrap around into the right ones.
    distances = (column - column.dtype.type(base)).astype(_WIDTHS[code])
    return (
        bytes([code])
        + base.to_bytes(_BASE_BYTES, "little", signed=signed)
        + distances.tobytes()
    )


def unpack_ints(data: bytes, *, signed: bool = False) -> list[int]:
    """The integers that `pack_ints` packed."""
    if not data:
        return []
    base = int.from_bytes(data[1 : 1 + _BASE_BYTES], "little", signed=signed)
    distances = np.frombuffer(data, dtype=_WIDTHS[data[0]], offset=1 + _BASE_BYTES)
    dtype = np.int64 if signed else np.uint64
    values: list[int] = (distances.astype(dtype) + dtype(base)).tolist()
    return values


def pack_steps(values: Sequence[int]) -> bytes:
    """Pack integers that rise, or nearly, as the steps between them.

    Args:
        values: In [-2**62, 2**62).

    Returns:
        Nothing for no values; else the first (8 bytes, little-endian), then the steps
        as `pack_ints` packs them.
    """
    if not values:
        return b""
    first = int(values[0]).to_bytes(_BASE_BYTES, "little", signed=True)
    steps = np.diff(np.array(values, dtype=np.int64))
    return first + pack_ints(steps.tolist(), signed=True)


def unpack_steps(data: bytes) -> list[int]:
    """The integers that `pack_steps` packed."""
    if not data:
        return []
    first = int.from_bytes(data[:_BASE_BYTES], "little", signed=True)
    steps = unpack_ints(data[_BASE_BYTES:], signed=True)
    values: list[int] = np.cumsum([first, *steps], dtype=np.int64).tolist()
    return values


def pack_set(values: Collection[int]) -> tuple[int, bytes]:
    """Pack a set of integers that lie close together: the least, and a bitmap."""
    if not values:
        return 0, b""
    first = min(values)
    bits = np.zeros(max(values) - first + 1, dtype=bool)
    bits[[value - first for value in values]] = True
    return first, np.packbits(bits).tobytes()


def unpack_set(first: int, bitmap: bytes) -> set[int]:
    """The set that `pack_set` packed."""
    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8))
    return set((np.flatnonzero(bits) + first).tolist())
