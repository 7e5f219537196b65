"""Clocks that are wrong by an offset and by a drift."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.simulation.clock import Clock, Jump
from sds_core.simulation.scenario import ClockSkew
from tests.support.properties import CAREFUL

START_MS = 1_760_000_000_000
JUMPS = st.lists(
    st.builds(
        Jump,
        st.integers(START_MS, START_MS + 10_000_000),
        st.integers(-100_000, 100_000),
    ),
    max_size=4,
).map(lambda jumps: tuple(sorted(jumps)))


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
    jumps=JUMPS,
    never_back=st.booleans(),
)
def test_time_of_a_reading_is_the_first_with_that_reading(
    offset_ms: int,
    drift_ppm: float,
    elapsed_ms: int,
    jumps: tuple[Jump, ...],
    never_back: bool,
) -> None:
    """So no deadline fires too early by the clock that set it."""
    clock = Clock(START_MS, offset_ms, drift_ppm, jumps, never_back)
    reading_ms = clock.reading(START_MS + elapsed_ms)
    at_ms = clock.time_of(reading_ms)
    assert clock.reading(at_ms) >= reading_ms
    assert clock.reading(at_ms - 1) < reading_ms
    # A clock that went back shows a reading more than once.
    assert at_ms <= START_MS + elapsed_ms


@CAREFUL
@given(jumps=JUMPS, elapsed_ms=st.lists(st.integers(0, 10_000_000), min_size=2))
def test_clock_of_a_participant_never_goes_back(
    jumps: tuple[Jump, ...], elapsed_ms: list[int]
) -> None:
    """It stands still until it has caught up; a tap's clock shows the jump."""
    steady = Clock(START_MS, jumps=jumps, never_back=True)
    raw = steady._replace(never_back=False)
    times_ms = sorted(START_MS + one for one in elapsed_ms)
    readings = [steady.reading(at_ms) for at_ms in times_ms]
    assert readings == sorted(readings)
    for at_ms, reading_ms in zip(times_ms, readings, strict=True):
        assert reading_ms >= raw.reading(at_ms)
    last_ms = START_MS + 1_000_000_000
    assert raw.reading(last_ms) == last_ms + sum(one.by_ms for one in jumps)


def test_jumps_are_drawn_within_the_simulation_and_the_bounds() -> None:
    """As often as their mean says, in both directions; none without a mean."""
    skew = ClockSkew(mean_jump_interval_s=100, jump_ms=90_000)
    clock = Clock.drawn(START_MS, skew, Random(1), 100_000_000)
    assert 900 < len(clock.jumps) < 1_100
    assert all(START_MS < one.at_ms < START_MS + 100_000_000 for one in clock.jumps)
    sizes_ms = [one.by_ms for one in clock.jumps]
    assert -90_000 <= min(sizes_ms) < -80_000
    assert 80_000 < max(sizes_ms) <= 90_000
    assert clock.never_back
    assert Clock.drawn(START_MS, ClockSkew(), Random(1), 100_000_000).jumps == ()


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
