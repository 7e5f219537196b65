"""Computes Reed-Solomon parity shards in the two codes that senders of segments use.

Both codes evaluate polynomials over GF(256) at points, which are bytes. The codes
differ in the representation of the field (`field.py`) and in the points:

- classical (klauspost/reedsolomon without options, status-go): the polynomial has a
  degree below the number of data shards. The polynomial's value at point i is data
  shard i, and the value at point data count + j is parity shard j.
- Leopard (Leopard-RS with 8 bits: nim-segmentation, LIP-243): m is the parity count,
  rounded up to a power of two. Parity shard j is the value at point j, and data shard i
  is the value at point m + i. The values at the points after the data shards are zero.
  The polynomial has a degree below 256 - m.

Interoperability: the parity shards are byte-identical to those of klauspost/reedsolomon
1.14.2 in its default form and in its Leopard form with 8 bits
(tests/vectors/reed_solomon.json). If data count + m exceeds 256, Leopard-RS uses a
field with 16 bits, which `is_supported` excludes.

Libraries for Python are not suitable: zfec is under the GPL, pyeclib allows at most 32
shards and adds its own headers, reedsolo works byte by byte, and galois is ten times
slower.
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
    """How parity shards are computed."""

    CLASSICAL = "classical"
    LEOPARD = "leopard"


LEOPARD_ALIGNMENT_BYTES = 64
"""The length of each shard of Leopard-RS must be a multiple of this number."""


def is_supported(code: ErasureCode, data_count: int, parity_count: int) -> bool:
    """Return whether the code's field has enough points for these numbers of shards."""
    if data_count < 1 or parity_count < 1:
        return False
    if code is ErasureCode.LEOPARD:
        enough = data_count + _next_power(parity_count) <= ELEMENTS
        return enough and parity_count <= data_count
    return data_count + parity_count <= ELEMENTS


def parity_shards(
    code: ErasureCode, data: Sequence[bytes], parity_count: int
) -> list[bytes]:
    """Return the parity shards of data shards that have equal lengths.

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
    """Return all data shards in order. `data` and `parity` have the available shards.

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
    # A parity shard minus the known data shards is the contribution of the missing data
    # shards.
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


# The cache needs little memory: a matrix has at most 16 KiB, and a channel uses few
# sizes.
@lru_cache(maxsize=64)
def _matrix(code: ErasureCode, data_count: int, parity_count: int) -> tuple[bytes, ...]:
    """Return the factor of each data shard (column) in each parity shard (row)."""
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
    # The polynomial has values at all 256 points. For each t < m, the sum of value
    # times point^t over these points is zero. Each parity shard has a Lagrange
    # polynomial over the points 0 to m - 1. So the factor of a data shard in a parity
    # shard is the value of this Lagrange polynomial at the data shard's point.
    power = _next_power(parity_count)
    columns = _lagrange(field, power, range(power, power + data_count))
    return tuple(map(bytes, zip(*columns, strict=True)))[:parity_count]


def _lagrange(field: Field, count: int, points: range) -> list[bytes]:
    """Return the values at `points` of the Lagrange polynomials over 0 to count - 1."""
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
    """Multiply each shard by its factor; return the sum. Lengths are equal."""
    total = np.zeros(length, np.uint8)
    for factor, shard in zip(factors, shards, strict=True):
        total ^= np.frombuffer(shard.translate(field.multiples[factor]), np.uint8)
    return total.tobytes()


def _inverse(field: Field, square: Sequence[bytes]) -> list[bytes]:
    """Return the inverse of a square part of a code's matrix (Gauss-Jordan).

    Rows need no exchange: every square part of the matrices has an inverse, so the
    diagonal never has a zero.
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
