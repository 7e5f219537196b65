"""Checks that options have at least their minimum values."""

from __future__ import annotations

from collections.abc import Mapping


def check_least(options: object, least: Mapping[str, float], note: str = "") -> None:
    """Check that each option in `least` is None or at least its minimum.

    `note` is appended to the error message. It can name an allowed value that is not a
    number, for example " or None".

    Raises:
        ValueError: An option is below its minimum.
    """
    for option, bound in least.items():
        value = getattr(options, option)
        if value is not None and value < bound:
            message = f"{option} is {value}, but must be at least {bound}{note}"
            raise ValueError(message)
