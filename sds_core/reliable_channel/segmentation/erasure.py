"""Computes Reed-Solomon parity shards in the two codes that senders of segments use.

In both codes, the shards are values of a polynomial over GF(256) at different points.
A point is a byte. The codes differ in the representation of the field (`field.py`), and
in which point belongs to which shard:

- The classical code (klauspost/reedsolomon without options, status-go): The polynomial
  has a degree below the number of data shards. The polynomial's value at point i is
  data shard i, and the value at point data count + j is parity shard j.
- Leopard-RS with 8 bits (nim-segmentation, LIP-243): m is the number of parity shards,
  rounded up to a power of two. Parity shard j is the value at point j, and data shard i
  is the value at point m + i. At all points above those of the data shards, the value
  is zero. The polynomial has a degree below 256 - m.

The parity shards are byte-identical to those that klauspost/reedsolomon 1.14.2 computes
with its default code, and with its Leopard code with 8 bits
(tests/vectors/reed_solomon.json). If data count + m exceeds 256, Leopard-RS uses a
field with 16 bits. This module does not support this field; see `is_supported`.

This module exists because libraries for Python are not suitable. zfec is under the GPL.
pyeclib allows at most 32 shards and adds its own headers. reedsolo works byte by
byte, so it is slow. galois is ten times slower than this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np

from sds_core.reliable_channel.segmentation.field import (
    ELEMENTS,
    Field,
    cantor_field,
    polynomial_field,
)


class ErasureCode(StrEnum):
    """The codes by which parity shards can be computed."""

    CLASSICAL = "classical"
    LEOPARD = "leopard"


LEOPARD_ALIGNMENT_BYTES = 64
"""The length of each shard of Leopard-RS must be a multiple of this number."""


def is_supported(code: ErasureCode, data_count: int, parity_count: int) -> bool:
    """Return whether this module can compute the code for these numbers of shards.

    GF(256) must have enough points for all shards. For Leopard-RS, there must not be
    more parity shards than data shards.
    """
    if data_count < 1 or parity_count < 1:
        return False
    if code is ErasureCode.LEOPARD:
        enough = data_count + _next_power(parity_count) <= ELEMENTS
        return enough and parity_count <= data_count
    return data_count + parity_count <= ELEMENTS


def parity_shards(
    code: ErasureCode, data: Sequence[bytes], parity_count: int
) -> list[bytes]:
    """Return the parity shards for data shards. All data shards have the same length.

    Raises:
        ValueError: The numbers of shards are not supported.
    """
    matrix = _matrix(code, len(data), parity_count)
    length = len(data[0])
    field = _field(code)
    return [_combine(field, row, data, length) for row in matrix]


def recover(
    code: ErasureCode,
    data: Mapping[int, bytes],
    parity: Mapping[int, bytes],
    data_count: int,
    parity_count: int,
) -> list[bytes]:
    """Return all data shards in order.

    `data` and `parity` contain the available shards by index.

    Raises:
        ValueError: Too few shards are available, or the numbers of shards are not
            supported.
    """
    missing = [index for index in range(data_count) if index not in data]
    if not missing:
        return [data[index] for index in range(data_count)]
    if len(parity) < len(missing):
        message = (
            f"{len(missing)} data shards are missing, but only {len(parity)} parity "
            "shards are available"
        )
        raise ValueError(message)
    field = _field(code)
    matrix = _matrix(code, data_count, parity_count)
    used = sorted(parity)[: len(missing)]
    length = len(parity[used[0]])
    known = sorted(data)
    # A parity shard is the sum of the products of all data shards with their factors.
    # If the known products are subtracted, the sum of the unknown products remains.
    shards = [data[index] for index in known]
    rest = [
        _combine(
            field,
            bytes([*(matrix[row][index] for index in known), 1]),
            [*shards, parity[row]],
            length,
        )
        for row in used
    ]
    square = [bytes(matrix[row][index] for index in missing) for row in used]
    solved = [_combine(field, row, rest, length) for row in _inverse(field, square)]
    whole = {**data, **dict(zip(missing, solved, strict=True))}
    return [whole[index] for index in range(data_count)]


def _field(code: ErasureCode) -> Field:
    return cantor_field() if code is ErasureCode.LEOPARD else polynomial_field()


# The cache needs little memory, because a matrix has at most 16 KiB, and a channel uses
# few different numbers of shards.
@lru_cache(maxsize=64)
def _matrix(code: ErasureCode, data_count: int, parity_count: int) -> tuple[bytes, ...]:
    """Return the factors by which data shards are multiplied to get parity shards.

    Each row belongs to a parity shard, and each column to a data shard.
    """
    if not is_supported(code, data_count, parity_count):
        message = (
            f"{code} cannot make {parity_count} parity shards for {data_count} data "
            "shards"
        )
        raise ValueError(message)
    field = _field(code)
    if code is ErasureCode.CLASSICAL:
        points = range(data_count, data_count + parity_count)
        return tuple(_lagrange(field, data_count, points))
    # The code's polynomial f has a degree below 256 - m. So for each polynomial g of a
    # degree below m, the sum of f(x) g(x) over all 256 points x is zero. If g is the
    # Lagrange polynomial that is 1 at point j and 0 at the other points below m, this
    # sum contains only parity shard j and the data shards. So the data shard at point x
    # has the factor g(x) in parity shard j.
    power = _next_power(parity_count)
    columns = _lagrange(field, power, range(power, power + data_count))
    return tuple(map(bytes, zip(*columns, strict=True)))[:parity_count]


def _lagrange(field: Field, count: int, points: range) -> list[bytes]:
    """Return the values of Lagrange polynomials, with a row for each of `points`.

    Each column belongs to one of the points 0 to count - 1. The column's polynomial is
    1 at this point, and 0 at the other points below count.
    """
    multiples, inverses = field
    basis = range(count)
    denominators = [
        field.product(one ^ other for other in basis if other != one) for one in basis
    ]
    rows = []
    for point in points:
        whole = field.product(point ^ one for one in basis)
        row = [multiples[point ^ one][denominators[one]] for one in basis]
        rows.append(bytes(multiples[whole][inverses[value]] for value in row))
    return rows


def _combine(
    field: Field, factors: bytes, shards: Sequence[bytes], length: int
) -> bytes:
    """Return the sum of the shards, each multiplied by its factor."""
    total = np.zeros(length, np.uint8)
    for factor, shard in zip(factors, shards, strict=True):
        total ^= np.frombuffer(shard.translate(field.multiples[factor]), np.uint8)
    return total.tobytes()


def _inverse(field: Field, square: Sequence[bytes]) -> list[bytes]:
    """Return the inverse of a square submatrix of a code's matrix.

    The method is Gauss-Jordan elimination without exchanges of rows. Exchanges are not
    needed, because every square submatrix of these matrices has an inverse, so no zero
    occurs on the diagonal.
    """
    size = len(square)
    multiples, inverses = field
    rows = [
        row + bytes(int(column == index) for column in range(size))
        for index, row in enumerate(square)
    ]
    for column in range(size):
        first = rows[column].translate(multiples[inverses[rows[column][column]]])
        rows[column] = first
        for index, row in enumerate(rows):
            if index != column and row[column]:
                factors = bytes([1, row[column]])
                rows[index] = _combine(field, factors, [row, first], 2 * size)
    return [row[size:] for row in rows]


def _next_power(number: int) -> int:
    return 1 << (number - 1).bit_length()
