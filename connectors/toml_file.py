"""Reads TOML files that users write."""

from __future__ import annotations

import tomllib
from importlib.resources.abc import Traversable
from typing import Any


class UnreadableToml(ValueError):
    """The file is unreadable or invalid TOML; the message gives the reason."""


def read_toml(file: Traversable) -> dict[str, Any]:
    """Parse a TOML file, which is in UTF-8 with or without a byte order mark.

    Raises:
        UnreadableToml: The file is unreadable or invalid TOML.
    """
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise UnreadableToml(error.strerror or str(error)) from error
    # Deeply nested brackets raise a RecursionError. Numbers with thousands of digits
    # raise a ValueError, as invalid TOML does.
    except (ValueError, RecursionError) as error:
        message = f"is not TOML: {error}"
        raise UnreadableToml(message) from error
