"""Converts durations in rules to the speed of the traffic that the rules watch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sds_core.durations import duration_text


@dataclass(frozen=True, slots=True)
class Pace:
    """Divides durations by the speed of the traffic that the rules watch.

    Real time has the speed 1. Rates are not converted: they stay per second of wall
    time.

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
        """Divide a duration by the speed, and return it as PromQL text."""
        ms = duration / timedelta(milliseconds=1) / self.speed
        return duration_text(max(1, round(ms)))


LIFE = Pace()
"""Leaves durations as they are. The names of windows contain such real-time lengths,
whatever the speed of the traffic."""
