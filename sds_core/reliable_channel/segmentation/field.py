"""Multiplication tables of GF(256) for the two erasure codes (`erasure.py`).

Both codes use the field polynomial x^8 + x^4 + x^3 + x^2 + 1. In the classical code, a
byte contains an element's coefficients. In Leopard-RS, a byte contains an element's
coordinates in a Cantor basis. So the codes have different multiplication tables, but in
both codes, the sum of two elements is the XOR of their bytes.

Sources: klauspost/reedsolomon galois.go; catid/leopard LeopardFF8.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, reduce
from typing import NamedTuple

ELEMENTS = 256

_POLYNOMIAL = 0x11D
_CANTOR_BASIS = (1, 214, 152, 146, 86, 200, 88, 230)


class Field(NamedTuple):
    """Tables for one representation. Each table has an entry for each element.

    Attributes:
        multiples: For each element, its products with all elements, as a table for
            `bytes.translate`.
        inverses: For each element, its multiplicative inverse. The entry of 0 is 0.
    """

    multiples: tuple[bytes, ...]
    inverses: bytes

    def product(self, elements: Iterable[int]) -> int:
        """Return the product of the elements; 1 if `elements` is empty."""
        return reduce(lambda one, other: self.multiples[one][other], elements, 1)


@cache
def polynomial_field() -> Field:
    """Return the field whose bytes are coefficients (klauspost/reedsolomon)."""
    return _field(bytes(range(ELEMENTS)))


@cache
def cantor_field() -> Field:
    """Return the field whose bytes are Cantor-basis coordinates (Leopard-RS)."""
    meaning = bytearray(ELEMENTS)
    for bit, basis in enumerate(_CANTOR_BASIS):
        for lower in range(1 << bit):
            meaning[lower | 1 << bit] = meaning[lower] ^ basis
    return _field(bytes(meaning))


def _field(meaning: bytes) -> Field:
    # `meaning[byte]` contains the coefficients of the element that `byte` represents.
    byte_of = bytes(map(meaning.index, range(ELEMENTS)))
    powers, logarithms = _powers_and_logarithms()
    order = ELEMENTS - 1

    def multiply(one: int, other: int) -> int:
        if not one or not other:
            return 0
        exponent = logarithms[meaning[one]] + logarithms[meaning[other]]
        return byte_of[powers[exponent % order]]

    elements = range(ELEMENTS)
    multiples = tuple(bytes(multiply(a, b) for b in elements) for a in elements)
    # In both representations, byte 1 represents the element 1.
    inverses = bytes([0, *(table.index(1) for table in multiples[1:])])
    return Field(multiples, inverses)


def _powers_and_logarithms() -> tuple[list[int], dict[int, int]]:
    # In coefficients, 2 is the element x. Every element except 0 is a power of x.
    powers = [1]
    while len(powers) < ELEMENTS - 1:
        doubled = powers[-1] << 1
        powers.append(doubled ^ _POLYNOMIAL if doubled >= ELEMENTS else doubled)
    return powers, {power: exponent for exponent, power in enumerate(powers)}
