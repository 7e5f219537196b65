"""One tap: its numbers, silences and heartbeats (docs/figures.md, 8)."""

from __future__ import annotations

import pytest

from sds_core.observer import blob
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.record import NO_SEQ
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tap_view import (
    BLOB_VERSION,
    MAX_HOLE,
    MAX_HOLES,
    TapTotals,
    TapView,
)
from tests.support.frames import START_MS
from tests.support.observer.packed_tap import Tap
from tests.support.tap import digest, digest_by_own_clock

HORIZON_MS = DEFAULTS.horizon_ms


def test_numbers_without_a_hole_are_healthy(tap: Tap) -> None:
    """In any order within a batch, over all partitions."""
    tap.apply(
        digest((0, 1), (2_000, 3)), digest((1_000, 2), (3_000, 4)), clock_ms=3_000
    )
    tap.apply(clock_ms=100_000)
    assert tap.figures == (0, None)
    assert tap.view.totals.last_seen_ms == START_MS + 3_000


def test_heartbeats_keep_a_tap_alive_and_repeat_its_last_number(tap: Tap) -> None:
    """They are never duplicates, and neither open nor close a hole."""
    beats = [(5_000, 7), (10_000, 7), (20_000, 7)]
    tap.apply(digest((0, 7), (30_000, 8), heartbeats=beats), clock_ms=30_000)
    tap.apply(clock_ms=100_000)
    assert tap.figures == (0, None)
    assert tap.view.totals.last_seen_ms == START_MS + 30_000


def test_heartbeat_shows_that_a_frame_is_missing(tap: Tap) -> None:
    """Its number was given to a frame, which must arrive."""
    tap.apply(digest((0, 7), heartbeats=[(5_000, 9)]), clock_ms=5_001)
    assert tap.deadline_ms == 20_000
    tap.apply(digest((20_000, 8)), clock_ms=20_001)
    assert tap.figures == (1, 20_000)


def test_frame_comes_before_the_heartbeat_of_the_same_time(tap: Tap) -> None:
    """In any partitions."""
    tap.apply(digest(heartbeats=[(0, 7)]), digest((0, 7)), clock_ms=0)
    tap.apply(digest(heartbeats=[(1_000, 8)]), digest((1_000, 8)), clock_ms=1_001)
    assert tap.deadline_ms == 1_000 + HORIZON_MS


@pytest.mark.parametrize(("silent_ms", "hole"), [(15_000, None), (15_001, 15_001)])
def test_silence_of_more_than_fifteen_seconds_is_a_hole(
    tap: Tap, silent_ms: int, hole: int | None
) -> None:
    """Between two consecutive records, and found once the second is past."""
    tap.take((0, 1))
    tap.take((silent_ms, 2))
    assert tap.figures == (0, None)
    tap.apply(clock_ms=silent_ms + 1)
    assert tap.figures == (0, hole)


def test_first_record_is_no_silence(tap: Tap) -> None:
    """The time before it is unknown."""
    tap.take((0, 1))
    assert tap.figures == (0, None)


def test_silence_at_the_end_is_not_yet_between_two_records(tap: Tap) -> None:
    """The clock alone does not count it."""
    tap.take((0, 1))
    tap.apply(clock_ms=1_000_000)
    assert tap.figures == (0, None)
    assert tap.deadline_ms == HORIZON_MS


def test_missing_numbers_count_when_absent_for_fifteen_seconds(tap: Tap) -> None:
    """By the clock alone: not at 15 s, but a millisecond later."""
    tap.take((0, 1), (1_000, 5))
    tap.apply(clock_ms=1_001)
    assert tap.deadline_ms == 16_000
    tap.apply(clock_ms=16_000)
    assert tap.figures == (0, None)
    tap.apply(clock_ms=16_001)
    assert tap.figures == (3, 16_000)
    assert tap.deadline_ms == 1_000 + HORIZON_MS


@pytest.mark.parametrize(
    ("come", "missing"),
    [
        ([2, 3, 4], 0),
        ([4, 3, 2], 0),
        ([2], 2),
        ([3], 2),
        ([4], 2),
        ([2, 4], 1),
        ([], 3),
    ],
)
def test_numbers_that_come_in_time_are_not_missing(
    tap: Tap, come: list[int], missing: int
) -> None:
    """In any order, from another partition, up to the deadline."""
    tap.take((0, 1), (1_000, 5))
    for seq in come:
        tap.take((16_000, seq))
    tap.apply(clock_ms=16_001)
    assert tap.figures[0] == missing


def test_number_that_comes_too_late_takes_nothing_back(tap: Tap) -> None:
    """It stays counted as missing."""
    tap.take((0, 1), (1_000, 3), (16_000, 3))
    tap.apply(clock_ms=16_001)
    tap.take((16_002, 2))
    assert tap.figures == (1, 16_000)


def test_each_hole_has_its_own_deadline(tap: Tap) -> None:
    """The older hole counts first."""
    tap.take((0, 1), (1_000, 3), (2_000, 6))
    tap.apply(clock_ms=16_001)
    assert tap.figures == (1, 16_000)
    tap.apply(clock_ms=17_001)
    assert tap.figures == (3, 17_000)


def test_records_themselves_move_the_clock(tap: Tap) -> None:
    """A hole counts before a later record is applied."""
    tap.take((0, 1), (1_000, 3), (15_000, 4), (16_001, 2))
    assert tap.figures == (1, 16_000)


def test_first_number_opens_no_hole(tap: Tap) -> None:
    """A tap's earlier numbers were written before the start."""
    tap.take((0, 1_000))
    tap.apply(clock_ms=100_000)
    assert tap.figures == (0, None)


def test_number_zero_is_a_number(tap: Tap) -> None:
    """Numbers after it are missing if they do not arrive."""
    tap.take((0, 0), (1_000, 2))
    tap.apply(clock_ms=100_000)
    assert tap.figures[0] == 1


def test_records_without_numbers_keep_the_tap_alive(tap: Tap) -> None:
    """They open no holes."""
    tap.take((0, 1), (10_000, NO_SEQ), (20_000, 2))
    tap.apply(clock_ms=100_000)
    assert tap.figures == (0, None)


@pytest.mark.parametrize(
    ("missing", "counted"), [(MAX_HOLE - 1, MAX_HOLE - 1), (MAX_HOLE, 0)]
)
def test_huge_jump_of_numbers_restarts_the_tap(
    tap: Tap, missing: int, counted: int
) -> None:
    """So many records are not lost at once."""
    tap.take((0, 1), (1_000, 2 + missing))
    tap.apply(clock_ms=100_000)
    assert tap.figures[0] == counted


# --- forgetting


def test_tap_that_is_silent_for_the_horizon_is_forgotten(tap: Tap) -> None:
    """By its deadline, a millisecond after the horizon."""
    tap.take((0, 1), (1_000, 3))
    tap.apply(clock_ms=20_000)
    assert tap.deadline_ms == 1_000 + HORIZON_MS
    tap.apply(clock_ms=1_000 + HORIZON_MS)
    assert not tap.view.is_forgotten
    assert tap.figures == (1, 16_000)
    tap.apply(clock_ms=1_001 + HORIZON_MS)
    assert tap.view.is_forgotten
    assert tap.view.totals == TapTotals()
    assert tap.deadline_ms is None


@pytest.mark.parametrize(
    ("silent_ms", "missing", "spans"), [(HORIZON_MS, 7, 1), (HORIZON_MS + 1, 0, 0)]
)
def test_tap_that_returns_after_the_horizon_begins_anew(
    tap: Tap, silent_ms: int, missing: int, spans: int
) -> None:
    """Even if its deadline has not fired; no number is missing."""
    tap.take((0, 1))
    tap.take((silent_ms, 9))
    tap.apply(clock_ms=silent_ms + 15_001)
    assert tap.view.totals.last_seen_ms == START_MS + silent_ms
    assert tap.view.totals.missing_records == missing
    assert len(tap.spans) == spans
    assert tap.deadline_ms == silent_ms + HORIZON_MS


def test_record_ahead_of_the_clock_keeps_the_view(tap: Tap) -> None:
    """Until the clock passes it, the tap has no other data."""
    tap.take((0, 1))
    back_ms = HORIZON_MS + 5_000
    tap.apply(digest((back_ms, 5)), clock_ms=HORIZON_MS + 1)
    assert tap.view.totals == TapTotals()
    assert not tap.view.is_forgotten
    assert tap.deadline_ms == back_ms
    tap.apply(clock_ms=back_ms + 1)
    seen_ms = START_MS + back_ms
    assert tap.view.totals == TapTotals(seen_ms, first_seen_ms=seen_ms)


def test_new_view_is_empty() -> None:
    """There is nothing to store."""
    assert TapView().is_forgotten


def test_first_sight_of_a_tap_lasts_until_it_is_forgotten(tap: Tap) -> None:
    """What was missed before it came says nothing of it."""
    tap.take((1_000, 1))
    tap.take((9_000, 2))
    assert tap.view.totals.first_seen_ms == START_MS + 1_000
    kept = TapView.from_blob(BLOB_VERSION, tap.view.to_blob())
    assert kept.totals.first_seen_ms == START_MS + 1_000
    tap.take((HORIZON_MS + 20_000, 3))
    assert tap.view.totals.first_seen_ms == START_MS + HORIZON_MS + 20_000


@pytest.mark.parametrize(
    ("second", "hole"),
    [
        # The clock of another tap was set forward in between.
        ((90_000, 2, 1_000), None),
        ((90_000, 2, 16_001), 90_000),
        # Its own clock was set back, so the topic's has to do.
        ((90_000, 2, -60_000), 90_000),
        ((15_000, 2, 90_000), None),
    ],
)
def test_jump_of_another_taps_clock_is_no_hole(
    tap: Tap, second: tuple[int, int, int], hole: int | None
) -> None:
    """The topic's clock and the tap's own must both show the silence."""
    tap.apply(digest_by_own_clock((0, 1, 0)), clock_ms=1)
    tap.apply(digest_by_own_clock(second), clock_ms=second[0] + 1)
    assert tap.figures == (0, hole)


def test_own_time_of_an_early_record_is_kept_for_its_turn(tap: Tap) -> None:
    """It waits in the state until the clock has come to it."""
    early = digest_by_own_clock((0, 1, 0), (90_000, 2, 1_000))
    tap.apply(early, clock_ms=10_000)
    tap.apply(clock_ms=90_001)
    assert tap.figures == (0, None)


def scattered(jumps: int) -> list[tuple[int, int]]:
    """Records of which each skips a number, and then every third skipped one."""
    ahead = [(0, 2 * one) for one in range(jumps)]
    return [*ahead, *((1, 2 * one + 1) for one in range(0, jumps - 1, 3))]


def test_sequence_gaps_that_are_awaited_are_limited(tap: Tap) -> None:
    """The oldest ones count at once, so that memory and time per record are bounded."""
    tap.apply(digest(*scattered(MAX_HOLES + 5_000)), clock_ms=1_000)
    tap.apply(digest((2_000, 2 * (MAX_HOLES + 5_000))), clock_ms=2_001)
    missing = tap.figures[0]
    assert 3_300 < missing < 5_000
    held = len(tap.awaited)
    assert held <= MAX_HOLES
    tap.apply(clock_ms=60_000)
    # Those that count already, and those that were awaited.
    assert tap.figures[0] == missing + held
    assert tap.spans == [(0, 17_000)]


def test_numbers_in_a_gap_that_arrive_in_any_order_divide_it_up_to_the_limit(
    tap: Tap,
) -> None:
    """A gap of the greatest length, of which every second number arrives."""
    jump = [(0, 0), (0, MAX_HOLE)]
    numbers = [(1, one) for one in range(2, MAX_HOLE, 2)]
    tap.apply(digest(*jump, *numbers), clock_ms=1_000)
    held = len(tap.awaited)
    assert held == MAX_HOLES
    assert tap.figures[0] == MAX_HOLE // 2 - held
    tap.apply(clock_ms=60_000)
    assert tap.figures[0] == MAX_HOLE // 2


def test_greatest_number_can_be_missing_and_can_arrive(tap: Tap) -> None:
    """The number after it does not fit into 64 bits with a sign."""
    greatest = 2**63 - 1
    tap.apply(digest((0, greatest - 3)), clock_ms=1_000)
    tap.apply(digest((1_000, greatest)), clock_ms=2_000)
    tap.apply(digest((3_000, greatest - 2)), clock_ms=100_000)
    assert tap.figures == (1, 16_000)
    tap = Tap()
    beat = digest((0, greatest - 1), heartbeats=[(1_000, greatest)])
    tap.apply(beat, clock_ms=1_001)
    tap.apply(clock_ms=100_000)
    assert tap.figures == (1, 16_000)


@pytest.mark.parametrize("cut", range(4))
def test_forgotten_tap_tells_its_last_figures(cut: int) -> None:
    """Once for each time that it is forgotten, however its records are cut."""
    records = [(0, 1), (1_000, 5), (HORIZON_MS + 2_000, 6)]
    view = TapView()
    found: list[object] = []
    for part in (records[:cut], records[cut:]):
        clock_ms = max([at for at, _ in part], default=0)
        found += view.apply([digest(*part)], START_MS + clock_ms + 1)
    found += view.forget()
    found += view.forget()
    assert [
        blob.unpack_totals(one.totals, TapTotals).missing_records
        for one in found
        if isinstance(one, Forgotten)
    ] == [3, 0]
