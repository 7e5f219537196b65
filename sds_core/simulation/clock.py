"""Clocks of participants and taps, with offset, drift and jumps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from sds_core.simulation.scenario import ClockJump, ClockSkew

_MILLION = 1_000_000


class Jump(NamedTuple):
    """At simulation time `at_ms`, Unix ms, the clock's reading changes by `by_ms`."""

    at_ms: int
    by_ms: int


class Clock(NamedTuple):
    """A clock whose reading is linear in simulation time, except for jumps.

    Attributes:
        offset_ms: Milliseconds by which the clock is ahead of simulation time at
            `start_ms`; negative if the clock is behind.
        drift_ppm: Millionths by which the clock runs faster than simulation time.
        jumps: Jumps in order of time. A negative jump sets the clock back.
        never_back: If True, a negative jump does not decrease the reading. Instead, the
            reading stands still for about the length of the jump. Clocks of
            participants set `never_back`, because a library's time must not decrease.
    """

    start_ms: int
    offset_ms: int = 0
    drift_ppm: float = 0.0
    jumps: tuple[Jump, ...] = ()
    never_back: bool = False

    @classmethod
    def drawn(
        cls, start_ms: int, skew: ClockSkew, random: Random, length_ms: int = 0
    ) -> Clock:
        """Return one participant's clock, with errors drawn from `skew`."""
        wrong = random.random() < skew.share
        offset_ms = random.randint(-skew.offset_ms, skew.offset_ms)
        drift_ppm = random.uniform(-skew.drift_ppm, skew.drift_ppm)
        jumps = tuple(_drawn_jumps(start_ms, skew, random, length_ms))
        if not wrong:
            return cls(start_ms)
        return cls(start_ms, offset_ms, drift_ppm, jumps, never_back=True)

    @classmethod
    def set_by(
        cls,
        start_ms: int,
        offset_ms: int,
        drift_ppm: float,
        jumps: Iterable[ClockJump],
    ) -> Clock:
        """Return a clock with the given errors. Negative jumps set its reading back."""
        moments = [
            Jump(start_ms + round(one.at_s * 1_000), one.by_ms)
            for one in sorted(jumps, key=lambda one: one.at_s)
        ]
        return cls(start_ms, offset_ms, drift_ppm, tuple(moments))

    def reading(self, at_ms: int) -> int:
        """Return the clock's reading at a simulation time."""
        if not self.jumps:
            # This case saves CPU time, because each arrival reads a clock, and most
            # clocks have no jumps.
            return self._without_jumps(at_ms)
        set_by_ms = 0
        latest_ms = -math.inf
        for jump in self.jumps:
            if jump.at_ms > at_ms:
                break
            if self.never_back:
                before_ms = self._without_jumps(jump.at_ms - 1) + set_by_ms
                latest_ms = max(latest_ms, before_ms)
            set_by_ms += jump.by_ms
        return int(max(latest_ms, self._without_jumps(at_ms) + set_by_ms))

    def time_of(self, reading_ms: int) -> int:
        """Return the first simulation time at which the clock reaches `reading_ms`."""
        set_by_ms = 0
        since_ms = -math.inf
        for jump in self.jumps:
            due_ms = max(since_ms, self._first_time_of(reading_ms - set_by_ms))
            if due_ms < jump.at_ms:
                return int(due_ms)
            since_ms = jump.at_ms
            set_by_ms += jump.by_ms
        return int(max(since_ms, self._first_time_of(reading_ms - set_by_ms)))

    def _without_jumps(self, at_ms: int) -> int:
        if not self.drift_ppm:
            return at_ms + self.offset_ms
        drifted_ms = (at_ms - self.start_ms) * self.drift_ppm / _MILLION
        return at_ms + self.offset_ms + math.floor(drifted_ms)

    def _first_time_of(self, reading_ms: int) -> int:
        due_ms = reading_ms - self.offset_ms
        if not self.drift_ppm:
            return due_ms
        elapsed_ms = (due_ms - self.start_ms) / (1 + self.drift_ppm / _MILLION)
        # Readings are rounded, so the computed time is not exact. The search starts at
        # least 1 ms earlier, and counts up.
        due_ms = self.start_ms + math.floor(elapsed_ms) - 1
        while self._without_jumps(due_ms) < reading_ms:
            due_ms += 1
        return due_ms


def _drawn_jumps(
    start_ms: int, skew: ClockSkew, random: Random, length_ms: int
) -> Iterable[Jump]:
    if skew.mean_jump_interval_s is None:
        return
    elapsed_ms = 0.0
    while True:
        wait_s = random.expovariate(1 / skew.mean_jump_interval_s)
        elapsed_ms += wait_s * 1_000
        if elapsed_ms >= length_ms:
            return
        by_ms = random.randint(-skew.jump_ms, skew.jump_ms)
        yield Jump(start_ms + int(elapsed_ms), by_ms)
