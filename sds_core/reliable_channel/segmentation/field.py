"""Multiplication tables of GF(256), in the two representations of erasure codes.

Both representations have the polynomial x^8 + x^4 + x^3 + x^2 + 1. Leopard-RS
represents an element by its coordinates in a Cantor basis instead of by its
coefficients. The representation changes the tables, but addition is XOR in both forms.

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
    """The tables of one form, with an entry for each element.

    Attributes:
        multiples: Products of a factor with all elements, for `bytes.translate`.
        inverses: Its inverse; 0 for 0.
    """

    multiples: tuple[bytes, ...]
    inverses: bytes

    def product(self, elements: Iterable[int]) -> int:
        """Return the product of elements; 1 for no elements."""
        return reduce(lambda one, other: self.multiples[one][other], elements, 1)


@cache
def polynomial_field() -> Field:
    """Return the field whose bytes are coefficients, as in klauspost/reedsolomon."""
    return _field(bytes(range(ELEMENTS)))


@cache
def cantor_field() -> Field:
    """Return the field whose bytes are coordinates in a Cantor basis: Leopard-RS."""
    meaning = bytearray(ELEMENTS)
    for bit, basis in enumerate(_CANTOR_BASIS):
        for lower in range(1 << bit):
            meaning[lower | 1 << bit] = meaning[lower] ^ basis
    return _field(bytes(meaning))


def _field(meaning: bytes) -> Field:
    # `meaning` has the coefficients of the element that each byte represents.
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
    # In both forms, byte 1 represents the element 1.
    inverses = bytes([0, *(table.index(1) for table in multiples[1:])])
    return Field(multiples, inverses)


def _powers_and_logarithms() -> tuple[list[int], dict[int, int]]:
    # Every element except 0 is a power of 2.
    powers = [1]
    while len(powers) < ELEMENTS - 1:
        doubled = powers[-1] << 1
        powers.append(doubled ^ _POLYNOMIAL if doubled >= ELEMENTS else doubled)
    return powers, {power: exponent for exponent, power in enumerate(powers)}
