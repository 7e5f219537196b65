"""Checks of the options that an application gives."""

from __future__ import annotations

from collections.abc import Mapping


def check_least(options: object, least: Mapping[str, float], note: str = "") -> None:
    """Check that options are at least their minimum; options of None are not checked.

    `note` is appended to the error message, to name other allowed values.

    Raises:
        ValueError: An option is too small.
    """
    for option, bound in least.items():
        value = getattr(options, option)
        if value is not None and value < bound:
            message = f"{option} is {value}, but must be at least {bound}{note}"
            raise ValueError(message)
