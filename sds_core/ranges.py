"""Checks that options are within their minimum and maximum values."""

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


def check_most(options: object, most: Mapping[str, float], note: str = "") -> None:
    """Check that each option in `most` is None or at most its maximum.

    `note` is appended to the error message. It can name the case in which the maximum
    applies.

    Raises:
        ValueError: An option is above its maximum.
    """
    for option, bound in most.items():
        value = getattr(options, option)
        if value is not None and value > bound:
            message = f"{option} is {value}, but must be at most {bound}{note}"
            raise ValueError(message)
