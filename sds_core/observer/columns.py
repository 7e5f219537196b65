"""Packs integers and sets for the state, which stores every byte per message."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

Column = np.ndarray
"""Integers of one kind, shape (n,), dtype int64 or uint64."""

_WIDTHS = tuple(np.dtype(name) for name in ("<u1", "<u2", "<u4", "<u8"))

_CODES = [
    next(code for code, width in enumerate(_WIDTHS) if bits <= 8 * width.itemsize)
    for bits in range(65)
]
"""Code of the narrowest width by number of bits."""

_BASE_BYTES = 8


def integers(column: Column) -> list[int]:
    """The integers of a column as Python has them."""
    listed: list[int] = column.tolist()
    return listed


def pack_ints(values: Sequence[int] | Column, *, signed: bool = False) -> bytes:
    """Pack integers as their differences from the least, each in the fewest bytes.

    Args:
        values: Integers in [0, 2**64), or in [-2**63, 2**63) if `signed`.
        signed: Whether values may be negative.

    Returns:
        Empty if there are no values; otherwise the code of the width (1 byte), the
        least value (8 bytes, little-endian) and the differences, shape (n,).
    """
    if not len(values):
        return b""
    column = np.asarray(values, dtype=np.int64 if signed else np.uint64)
    base = int(column.min())
    code = _CODES[(int(column.max()) - base).bit_length()]
    # Subtraction wraps around modulo 2**64, so a span over 2**63 is correct too.
    differences = (column - column.dtype.type(base)).astype(_WIDTHS[code])
    return (
        bytes([code])
        + base.to_bytes(_BASE_BYTES, "little", signed=signed)
        + differences.tobytes()
    )


def unpack_ints(data: bytes, *, signed: bool = False) -> Column:
    """The integers that `pack_ints` packed; int64 if `signed`, otherwise uint64."""
    dtype = np.int64 if signed else np.uint64
    if not data:
        return np.zeros(0, dtype)
    base = int.from_bytes(data[1 : 1 + _BASE_BYTES], "little", signed=signed)
    differences = np.frombuffer(data, dtype=_WIDTHS[data[0]], offset=1 + _BASE_BYTES)
    return differences.astype(dtype) + dtype(base)


def pack_steps(values: Sequence[int] | Column) -> bytes:
    """Pack integers that mostly rise, as the steps between them.

    Args:
        values: Integers in [-2**62, 2**62).

    Returns:
        Empty if there are no values; otherwise the first value (8 bytes,
        little-endian), then the steps, packed by `pack_ints`.
    """
    if not len(values):
        return b""
    first = int(values[0]).to_bytes(_BASE_BYTES, "little", signed=True)
    column = np.asarray(values, np.int64)
    return first + pack_ints(column[1:] - column[:-1], signed=True)


def unpack_steps(data: bytes) -> Column:
    """The integers that `pack_steps` packed, int64."""
    if not data:
        return np.zeros(0, np.int64)
    first = int.from_bytes(data[:_BASE_BYTES], "little", signed=True)
    steps = unpack_ints(data[_BASE_BYTES:], signed=True)
    values = np.empty(len(steps) + 1, np.int64)
    values[0] = first
    values[1:] = steps
    return values.cumsum()


def pack_set(values: Collection[int]) -> tuple[int, bytes]:
    """Pack a set of integers that lie close together: the least, and a bitmap.

    Returns (0, empty) for an empty set.
    """
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
