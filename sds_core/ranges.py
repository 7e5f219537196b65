"""Checks options that an application passes."""

from __future__ import annotations

from collections.abc import Mapping


def check_least(options: object, least: Mapping[str, float], note: str = "") -> None:
    """Check that each option is None or at least its minimum.

    `note` is appended to the error message. It can name other allowed values.

    Raises:
        ValueError: An option is too small.
    """
    for option, bound in least.items():
        value = getattr(options, option)
        if value is not None and value < bound:
            message = f"{option} is {value}, but must be at least {bound}{note}"
            raise ValueError(message)
