"""Durations in rules, for traffic as fast as life or faster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the traffic is that the rules watch.

    Rates stay per second of wall time, and names of windows those of life.

    Attributes:
        speed: By which durations are divided; 1 for life.

    Raises:
        ValueError: The speed is not above 0.
    """

    speed: float = 1.0

    def __post_init__(self) -> None:
        """Check the speed."""
        if not self.speed > 0:
            message = f"speed {self.speed:g}: give a number above 0"
            raise ValueError(message)

    def __call__(self, duration: timedelta) -> str:
        """A duration as PromQL writes it, in the largest unit that divides it."""
        ms = max(1, round(duration / timedelta(milliseconds=1) / self.speed))
        unit, length = next(
            (unit, length) for unit, length in _UNITS_MS.items() if ms % length == 0
        )
        return f"{ms // length}{unit}"


LIFE = Pace()
"""Traffic as it comes; also what names the windows."""
