"""Durations as text, for example 500ms, 30s, 5m, 1h, 2d or 1h30m.

The units are ms, s, m, h and d, as in Prometheus.
"""

from __future__ import annotations

import math
import re
from typing import Literal

from sds_core.text import shown

Unit = Literal["ms", "s", "m", "h", "d"]

UNITS_MS: dict[Unit, int] = {
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "ms": 1,
}
"""Length of each unit, milliseconds; the largest unit comes first."""

NAMES: dict[Unit, str] = {
    "d": "days",
    "h": "hours",
    "m": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
}

_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"


def parse_duration_ms(text: str, plain: Unit) -> float:
    """Convert a text to a duration in milliseconds.

    Args:
        text: A number with a unit, a sequence of numbers with units, or a plain number.
        plain: Unit of a plain number.

    Raises:
        ValueError: The text is not a finite duration; the error message lists the
            allowed forms.
    """
    if re.fullmatch(f"(?:{_PART})+", text):
        parts = re.findall(_PART, text)
        return sum(float(length) * UNITS_MS[unit] for length, unit in parts)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        message = (
            f"{shown(text)} is not a duration: use a value such as 500ms, 30s, 5m, 1h "
            f"or 2d, or a plain number of {NAMES[plain]}"
        )
        raise ValueError(message)
    return number * UNITS_MS[plain]


def duration_text(duration_ms: float) -> str:
    """Return a duration as text, in the largest unit that gives a whole number."""
    for unit, length in UNITS_MS.items():
        if duration_ms and duration_ms % length == 0:
            return f"{duration_ms / length:.15g}{unit}"
    return f"{duration_ms:g}ms" if duration_ms else "0s"
