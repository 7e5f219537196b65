"""Encodes arrays and sets of integers in few bytes, because the state has many."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from sds_core.native import (
    IS_COMPILED,
    Bytes,
    Int64s,
    MutableBytes,
    Uint64,
    int64,
    native,
    uint64,
    view,
)

Column = np.ndarray
"""An array of integers, shape (n,), dtype int64 or uint64."""

_WIDTHS = tuple(np.dtype(name) for name in ("<u1", "<u2", "<u4", "<u8"))

_CODES = [
    next(code for code, width in enumerate(_WIDTHS) if bits <= 8 * width.itemsize)
    for bits in range(65)
]
"""Codes of widths, by number of bits.

Each code is the index, in `_WIDTHS`, of the smallest width that has this many bits.
"""

_BASE_BYTES = 8

DAMAGED = "an encoded column of integers is damaged"


def integers(column: Column) -> list[int]:
    """Convert a column to a list of Python integers."""
    listed: list[int] = column.tolist()
    return listed


_FEW = 1_024
"""Number of integers below which a compiled loop is faster than numpy."""

_SIGN = 1 << 63


@native
def pack_row(cells: Int64s, signed: bool) -> bytes:
    """Encode `cells`, 64 bits each, shape (n,), as `pack_ints` does."""
    count: int = len(cells)
    if not count:
        return b""
    if not IS_COMPILED or count >= _FEW:
        column = np.asarray(cells)
        return pack_ints(column if signed else column.view(np.uint64), signed=signed)
    # `cells` is signed. With inverted sign bits, unsigned values compare correctly.
    flip: int = 0 if signed else -_SIGN
    least: int = cells[0] ^ flip
    most: int = least
    row: int
    for row in range(count):
        value: int = cells[row] ^ flip
        if value < least:
            least = value
        elif value > most:
            most = value
    return _packed(cells, 0, least ^ flip, uint64(most) - uint64(least))


@native
def pack_row_steps(cells: Int64s) -> bytes:
    """Encode `cells`, 64 bits each, shape (n,), as `pack_steps` does."""
    count: int = len(cells)
    if not count:
        return b""
    if not IS_COMPILED or count >= _FEW:
        return pack_steps(np.asarray(cells))
    first = cells[0].to_bytes(_BASE_BYTES, "little", signed=True)
    if count == 1:
        return first
    least: int = cells[1] - cells[0]
    most: int = least
    row: int
    for row in range(1, count):
        step: int = cells[row] - cells[row - 1]
        if step < least:
            least = step
        elif step > most:
            most = step
    return first + _packed(cells, 1, least, uint64(most) - uint64(least))


@native
def _packed(cells: Int64s, from_: int, base: int, span: Uint64) -> bytes:
    """Encode differences from `base` as `pack_ints` does.

    If `from_` is 0, the integers are encoded; if `from_` is 1, the steps between them.
    """
    code: int = 3
    if span < 1 << 8:
        code = 0
    elif span < 1 << 16:
        code = 1
    elif span < 1 << 32:
        code = 2
    width: int = uint64(1) << code
    count: int = len(cells)
    data = bytearray(1 + _BASE_BYTES + (count - from_) * width)
    into: MutableBytes = data
    into[0] = code
    _put(into, 1, uint64(base), _BASE_BYTES)
    at: int = 1 + _BASE_BYTES
    row: int
    for row in range(from_, count):
        value: Uint64 = uint64(cells[row]) - uint64(base)
        if from_:
            value -= uint64(cells[row - 1])
        _put(into, at, value, width)
        at += width
    return bytes(data)


@native
def _put(into: MutableBytes, at: int, value: Uint64, width: int) -> None:
    """Write the low `width` bytes of an integer at position `at`, little-endian."""
    byte: int
    for byte in range(at, at + width):
        into[byte] = value & 0xFF
        value >>= 8


@native
def rows_in(data: bytes, steps: bool) -> int:
    """Number of integers that `pack_ints` or, if `steps`, `pack_steps` encoded.

    Raises:
        ValueError: The bytes are damaged.
    """
    count: int = 0
    at: int = 0
    size: int = len(data)
    if steps and size:
        count, at = 1, _BASE_BYTES
    if size == at:
        return count
    rest: int = size - at - 1 - _BASE_BYTES
    code: int = data[at] if rest > 0 else len(_WIDTHS)
    if code >= len(_WIDTHS) or rest & (uint64(1) << code) - 1:
        raise ValueError(DAMAGED)
    return count + (rest >> code)


@native
def unpack_row(data: bytes, signed: bool, steps: bool, cells: Int64s) -> None:
    """Decode a result of `pack_ints`, or of `pack_steps` if `steps`, into `cells`.

    Raises:
        ValueError: The bytes do not encode `len(cells)` integers.
    """
    count: int = len(cells)
    if rows_in(data, steps) != count:
        raise ValueError(DAMAGED)
    if not count:
        return
    if not IS_COMPILED or count >= _FEW:
        column = unpack_steps(data) if steps else unpack_ints(data, signed=signed)
        np.asarray(cells)[:] = column.view(np.int64)
        return
    read: Bytes = data
    at: int = 0
    row: int = 0
    total: Uint64 = 0
    if steps:
        total = _taken(read, 0, _BASE_BYTES)
        cells[0] = int64(total)
        if count == 1:
            return
        row, at = 1, _BASE_BYTES
    width: int = uint64(1) << read[at]
    base: Uint64 = _taken(read, at + 1, _BASE_BYTES)
    at += 1 + _BASE_BYTES
    while row < count:
        value: Uint64 = base + _taken(read, at, width)
        total = total + value if steps else value
        cells[row] = int64(total)
        at += width
        row += 1


@native
def _taken(read: Bytes, at: int, width: int) -> Uint64:
    value: Uint64 = 0
    byte: int
    for byte in range(at + width - 1, at - 1, -1):
        value = value << 8 | read[byte]
    return value


def unpacked_row(data: bytes, signed: bool, steps: bool) -> Column:
    """Decode as `unpack_row` does, into a new array, int64, shape (n,)."""
    column = np.empty(rows_in(data, steps), np.int64)
    unpack_row(data, signed, steps, view(column))
    return column


def pack_ints(values: Sequence[int] | Column, *, signed: bool = False) -> bytes:
    """Encode integers as their differences from the minimum, in few bytes.

    The integers must be in [0, 2**64), or in [-2**63, 2**63) if `signed`.

    Returns:
        Code of the differences' width (1 byte), minimum (8 bytes) and differences, all
        little-endian. Without values, the result is empty.
    """
    if not len(values):
        return b""
    column = np.asarray(values, dtype=np.int64 if signed else np.uint64)
    base = int(column.min())
    code = _CODES[(int(column.max()) - base).bit_length()]
    # Subtraction is modulo 2**64, so a difference of more than 2**63 is correct too.
    differences = (column - column.dtype.type(base)).astype(_WIDTHS[code])
    return (
        bytes([code])
        + base.to_bytes(_BASE_BYTES, "little", signed=signed)
        + differences.tobytes()
    )


def unpack_ints(data: bytes, *, signed: bool = False) -> Column:
    """The integers that `pack_ints` encoded; int64 if `signed`, otherwise uint64."""
    dtype = np.int64 if signed else np.uint64
    if not data:
        return np.zeros(0, dtype)
    rows_in(data, False)
    base = int.from_bytes(data[1 : 1 + _BASE_BYTES], "little", signed=signed)
    differences = np.frombuffer(data, dtype=_WIDTHS[data[0]], offset=1 + _BASE_BYTES)
    return differences.astype(dtype) + dtype(base)


def pack_steps(values: Sequence[int] | Column) -> bytes:
    """Encode integers as the steps between them.

    If the integers mostly increase, the result is short.

    The integers must be in [-2**62, 2**62).

    Returns:
        First value (8 bytes, little-endian), then the steps between values, encoded by
        `pack_ints`. Without values, the result is empty.
    """
    if not len(values):
        return b""
    first = int(values[0]).to_bytes(_BASE_BYTES, "little", signed=True)
    column = np.asarray(values, np.int64)
    return first + pack_ints(column[1:] - column[:-1], signed=True)


def unpack_steps(data: bytes) -> Column:
    """The integers that `pack_steps` encoded, int64."""
    if not data:
        return np.zeros(0, np.int64)
    first = int.from_bytes(data[:_BASE_BYTES], "little", signed=True)
    steps = unpack_ints(data[_BASE_BYTES:], signed=True)
    values = np.empty(len(steps) + 1, np.int64)
    values[0] = first
    values[1:] = steps
    return values.cumsum()


@native
def pack_set(values: Collection[int]) -> tuple[int, bytes]:
    """Encode a set of integers as their minimum and a bitmap.

    The integers must be close together, because the bitmap has a bit for each integer
    from the minimum to the maximum. For an empty set, the result is 0 and no bytes.
    """
    if not values:
        return 0, b""
    first: int = min(values)
    last: int = max(values)
    data = bytearray((last - first + 8) >> 3)
    into: MutableBytes = data
    value: int
    for value in values:
        into[(value - first) >> 3] |= 128 >> ((value - first) & 7)
    return first, bytes(data)


@native
def unpack_set(first: int, bitmap: bytes) -> set[int]:
    """The set that `pack_set` encoded."""
    read: Bytes = bitmap
    found: set[int] = set()
    place: int
    for place in range(8 * len(read)):
        if read[place >> 3] >> (7 - (place & 7)) & 1:
            found.add(first + place)
    return found
