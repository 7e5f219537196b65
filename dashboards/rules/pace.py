"""Durations in rules; if traffic is faster than real time, durations are shorter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sds_core.durations import duration_text


@dataclass(frozen=True, slots=True)
class Pace:
    """Speed of the traffic that the rules watch; durations are divided by this speed.

    A rate is per second of wall time. A window is named after its length in real time.

    Raises:
        ValueError: The speed is not positive.
    """

    speed: float = 1.0

    def __post_init__(self) -> None:
        """Check the speed."""
        if not self.speed > 0:
            message = f"speed {self.speed:g}: give a number above 0"
            raise ValueError(message)

    def __call__(self, duration: timedelta) -> str:
        """Return a duration in PromQL, in the largest unit that divides it exactly."""
        ms = duration / timedelta(milliseconds=1) / self.speed
        return duration_text(max(1, round(ms)))


LIFE = Pace()
"""Speed of real time. The names of windows are derived from this speed."""
