"""What is wrong with the product, as opposed to its surroundings."""

from __future__ import annotations


class Broken(AssertionError):
    """The product broke a promise."""


def expect(condition: bool, otherwise: str) -> None:
    """Raise `Broken` with a text if a condition is false."""
    if not condition:
        raise Broken(otherwise)
