"""Clocks of participants and taps, with offset and drift."""

from __future__ import annotations

import math
from random import Random
from typing import NamedTuple

from sds_core.simulation.scenario import ClockSkew

_MILLION = 1_000_000


class Clock(NamedTuple):
    """A clock whose reading is linear in simulation time.

    Attributes:
        start_ms: Start of the simulation; the error is `offset_ms` then.
        offset_ms: Milliseconds that the clock is ahead at the start.
        drift_ppm: Millionths by which it runs too fast.
    """

    start_ms: int
    offset_ms: int = 0
    drift_ppm: float = 0.0

    @classmethod
    def drawn(cls, start_ms: int, skew: ClockSkew, random: Random) -> Clock:
        """Return one participant's clock."""
        wrong = random.random() < skew.share
        offset_ms = random.randint(-skew.offset_ms, skew.offset_ms)
        drift_ppm = random.uniform(-skew.drift_ppm, skew.drift_ppm)
        return cls(start_ms, offset_ms, drift_ppm) if wrong else cls(start_ms)

    def reading(self, at_ms: int) -> int:
        """Return the clock's reading at a simulation time."""
        if not self.drift_ppm:
            return at_ms + self.offset_ms
        drifted_ms = (at_ms - self.start_ms) * self.drift_ppm / _MILLION
        return at_ms + self.offset_ms + math.floor(drifted_ms)

    def time_of(self, reading_ms: int) -> int:
        """Return the first simulation time at which the clock reads at least this."""
        due_ms = reading_ms - self.offset_ms
        if not self.drift_ppm:
            return due_ms
        elapsed_ms = (due_ms - self.start_ms) / (1 + self.drift_ppm / _MILLION)
        # Start one ms early and count up, because `reading` rounds.
        due_ms = self.start_ms + math.floor(elapsed_ms) - 1
        while self.reading(due_ms) < reading_ms:
            due_ms += 1
        return due_ms
