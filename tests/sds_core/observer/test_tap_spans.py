"""The time spans of the holes of one tap, as its view stores them."""

from __future__ import annotations

import pytest

from sds_core.observer import blob
from sds_core.observer.record import NO_SEQ
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tap_view import BLOB_VERSION, MAX_SPANS, TapTotals, TapView
from tests.support.frames import START_MS
from tests.support.observer.packed_tap import Tap
from tests.support.tap import digest

HORIZON_MS = DEFAULTS.horizon_ms
WINDOW_MS = DEFAULTS.verdict_window_ms


def test_silence_spans_from_record_to_record(tap: Tap) -> None:
    """The tap may have missed frames in it."""
    tap.take((0, 1), (15_000, 2), (40_000, 3))
    tap.apply(clock_ms=40_001)
    assert tap.spans == [(15_000, 40_000)]
    assert tap.hole_since_ms == 30_000


def test_missing_numbers_span_from_the_record_before(tap: Tap) -> None:
    """To the time at which they counted; late records do not matter."""
    beat = digest(heartbeats=[(4_000, 3)])
    tap.apply(digest((0, 1), (1_000, 3), (5_000, 2), (6_000, 6)), beat, clock_ms=6_000)
    tap.take((20_000, 4))
    tap.apply(clock_ms=21_000)
    assert tap.spans == []
    tap.apply(clock_ms=21_001)
    assert tap.figures == (1, 21_000)
    assert tap.spans == [(4_000, 21_000)]
    assert tap.hole_since_ms == 21_000


def test_overlapping_spans_are_merged(tap: Tap) -> None:
    """Others stay separate, in order of time."""
    tap.take((0, 1), (1_000, 3), (10_000, 5), (20_000, 6), (30_000, 6), (45_001, 6))
    tap.apply(clock_ms=45_002)
    assert tap.spans == [(0, 25_000), (30_000, 45_001)]
    tap.take((45_002, 6), (60_000, 7), (65_000, 9))
    tap.apply(clock_ms=90_000)
    assert tap.spans == [(0, 25_000), (30_000, 45_001), (60_000, 80_000)]


def test_long_silence_includes_overlapping_holes(tap: Tap) -> None:
    """Missing numbers before it or in it belong to the same hole."""
    tap.take((0, 1), (5_000, NO_SEQ), (21_000, 3), (22_000, 4))
    assert tap.spans == [(5_000, 21_000)]
    tap.apply(clock_ms=100_000)
    assert tap.spans == [(0, 36_000)]


def test_spans_of_any_age_are_stored() -> None:
    """A batch of hours has incidents of all of them."""
    tap = Tap()
    beats = [(at, 1) for at in range(20_000, 40_000 + HORIZON_MS, 10_000)]
    tap.take((0, 1))
    tap.apply(digest(heartbeats=beats), clock_ms=20_001 + HORIZON_MS)
    assert tap.spans == [(0, 20_000)]
    assert tap.figures == (0, 20_000)


@pytest.mark.parametrize("cut_ms", [20_001, 25_000, 25_001])
def test_new_span_is_merged_with_an_old_one(tap: Tap, cut_ms: int) -> None:
    """The result does not depend on how batches are cut."""
    unnumbered = [(at, NO_SEQ) for at in range(30_000, HORIZON_MS, 10_000)]
    tap.take((0, NO_SEQ), (20_000, 1), *unnumbered, (HORIZON_MS + 10_000, 3))
    tap.apply(clock_ms=HORIZON_MS + cut_ms)
    tap.apply(clock_ms=HORIZON_MS + 25_001)
    assert tap.spans == [(0, HORIZON_MS + 25_000)]


def test_number_of_stored_spans_is_limited(tap: Tap) -> None:
    """The newest stay."""
    # A silence of 20 s every 30 s.
    times = [
        at + pause for at in range(0, 60 * 30_000, 30_000) for pause in (0, 10_000)
    ]
    tap.take(*((at, NO_SEQ) for at in times))
    assert len(tap.spans) == MAX_SPANS
    assert tap.spans[-1] == (58 * 30_000 + 10_000, 59 * 30_000)
    assert tap.hole_since_ms == 25_000


@pytest.mark.parametrize("more_ms", [0, 1])
def test_trouble_continues_while_a_hole_is_in_the_window(
    tap: Tap, more_ms: int
) -> None:
    """Another hole before the end of the window extends it."""
    beats = [(at, 1) for at in range(20_000, 20_000 + WINDOW_MS, 10_000)]
    last_ms = 20_000 + WINDOW_MS - 15_000 + more_ms
    beats.append((last_ms, 1))
    tap.take((0, 1))
    tap.apply(
        digest((last_ms + 15_001, 2), heartbeats=sorted(beats)[: len(beats) - 1]),
        clock_ms=last_ms + 15_002,
    )
    assert tap.spans == [(0, 20_000), (last_ms, last_ms + 15_001)]
    assert tap.hole_since_ms == (last_ms + 15_000 if more_ms else 15_000)


def test_blob_without_spans_is_read(tap: Tap) -> None:
    """Release 0.1 wrote it, with a number missing."""
    since_ms = START_MS + 1_000
    data = blob.pack((START_MS + 2_000, 4, START_MS - 1), (7, [(5, 7, since_ms)], []))
    old = TapView.from_blob(BLOB_VERSION, data)
    old.apply([digest((3_000, 9))], START_MS + 18_001)
    assert old.totals == TapTotals(
        START_MS + 3_000,
        7,
        START_MS + 18_000,
        [(since_ms, START_MS + 18_000)],
        START_MS + 16_000,
    )
