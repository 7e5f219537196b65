"""Clocks that are wrong by an offset and by a drift."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.simulation.clock import Clock
from sds_core.simulation.scenario import ClockSkew
from tests.support.properties import CAREFUL

START_MS = 1_760_000_000_000


def test_clock_is_wrong_by_its_offset_and_by_what_it_drifted() -> None:
    """100 ppm are a second in ten thousand."""
    clock = Clock(START_MS, offset_ms=-500, drift_ppm=100)
    assert clock.reading(START_MS) == START_MS - 500
    assert clock.reading(START_MS + 10_000_000) == START_MS + 10_000_500


@CAREFUL
@given(
    offset_ms=st.integers(-100_000, 100_000),
    drift_ppm=st.one_of(st.just(0.0), st.floats(-100_000, 100_000)),
    elapsed_ms=st.integers(0, 10_000_000),
)
def test_time_of_a_reading_is_the_first_with_that_reading(
    offset_ms: int, drift_ppm: float, elapsed_ms: int
) -> None:
    """So no deadline fires too early by the clock that set it."""
    clock = Clock(START_MS, offset_ms, drift_ppm)
    reading_ms = clock.reading(START_MS + elapsed_ms)
    at_ms = clock.time_of(reading_ms)
    assert clock.reading(at_ms) >= reading_ms
    assert clock.reading(at_ms - 1) < reading_ms


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 200)])
def test_share_of_the_clocks_is_wrong_within_the_bounds(
    share: float, expected: int
) -> None:
    """Offsets and drifts stay within what the scenario says."""
    skew = ClockSkew(offset_ms=1_000, drift_ppm=50, share=share)
    random = Random(1)
    clocks = [Clock.drawn(START_MS, skew, random) for _ in range(200)]
    wrong = [clock for clock in clocks if clock != Clock(START_MS)]
    assert len(wrong) == expected
    assert all(
        abs(clock.offset_ms) <= 1_000 and abs(clock.drift_ppm) <= 50 for clock in clocks
    )
