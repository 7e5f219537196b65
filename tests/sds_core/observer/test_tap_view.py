"""One tap: its numbers, silences and heartbeats (docs/figures.md, 8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.observer import blob
from sds_core.observer.record import NO_SEQ
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tap_view import (
    BLOB_VERSION,
    MAX_HOLE,
    MAX_SPANS,
    TapDigest,
    TapTotals,
    TapView,
)
from tests.support.frames import START_MS
from tests.support.properties import CAREFUL
from tests.support.tap import digest

HORIZON_MS = DEFAULTS.horizon_ms
WINDOW_MS = DEFAULTS.verdict_window_ms


class Tap:
    """A view that is packed into its blob and unpacked again at every call."""

    def __init__(self) -> None:
        self._packed = TapView().to_blob()

    @property
    def view(self) -> TapView:
        """The view."""
        return TapView.from_blob(BLOB_VERSION, self._packed)

    def apply(self, *digests: TapDigest, clock_ms: int) -> None:
        """One batch."""
        view = self.view
        view.apply(digests, START_MS + clock_ms)
        self._packed = view.to_blob()

    def take(self, *records: tuple[int, int]) -> None:
        """Records of one partition, with the clock at the last of them."""
        self.apply(digest(*records), clock_ms=max(at for at, _ in records))

    @property
    def figures(self) -> tuple[int, int | None]:
        """Missing records and when the newest hole was found, relative."""
        totals = self.view.totals
        hole_ms = totals.last_hole_ms
        return totals.missing_records, None if hole_ms is None else hole_ms - START_MS

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Spans of the holes, relative."""
        holes = self.view.totals.holes
        return [(from_ms - START_MS, to_ms - START_MS) for from_ms, to_ms in holes]

    @property
    def hole_since_ms(self) -> int | None:
        """From when on there was always a hole in the window, relative."""
        since_ms = self.view.totals.hole_since_ms
        return None if since_ms is None else since_ms - START_MS

    @property
    def deadline_ms(self) -> int | None:
        """The next deadline, relative."""
        deadline_ms = self.view.next_deadline_ms
        return None if deadline_ms is None else deadline_ms - START_MS


@pytest.fixture
def tap() -> Tap:
    """A tap of which nothing is known."""
    return Tap()


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
    """Between two consecutive records, and found at the second."""
    tap.take((0, 1))
    tap.take((silent_ms, 2))
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


def test_two_batches_at_an_aligned_clock_are_as_one() -> None:
    """For any admission time that cuts the records of two partitions."""
    east = [(0, 1), (4_000, 5), (9_000, 8), (30_000, 10), (46_000, 14)]
    west = [(1_000, 2), (5_000, 6), (20_000, 9), (31_000, 11), (60_000, 15)]
    whole = Tap()
    whole.apply(digest(*east), digest(*west), clock_ms=60_000)
    assert whole.figures == (3, 24_000)
    for cut in range(0, 60_001, 500):
        tap = Tap()
        for clock_ms, part in (
            (cut, lambda at, cut=cut: at < cut),
            (60_000, lambda at, cut=cut: at >= cut),
        ):
            digests = [
                digest(*(r for r in records if part(r[0]))) for records in (east, west)
            ]
            tap.apply(*digests, clock_ms=clock_ms)
        assert tap.view.totals == whole.view.totals


def test_records_later_than_the_clock_wait_for_it(tap: Tap) -> None:
    """Another partition may bring the numbers between them."""
    tap.apply(digest((0, 1), (2_000, 5), (20_000, 6)), clock_ms=1_000)
    assert tap.view.totals.last_seen_ms == START_MS
    tap.apply(digest((1_000, 2), (1_100, 3), (1_200, 4)), clock_ms=20_000)
    tap.apply(clock_ms=100_000)
    # The silence before the last record is one all the same.
    assert tap.figures == (0, 20_000)


def test_late_record_arrives_with_the_clock_of_its_partition(tap: Tap) -> None:
    """A number more than 15 s late was missing."""
    # Stamped 4 s and 1 s: behind records of 14 s and 21 s in the same partition.
    records = [(0, 1), (5_000, 3), (14_000, 5), (14_000, 2), (21_000, 6), (21_000, 4)]
    for cut in range(len(records) + 1):
        tap = Tap()
        clock_ms = records[cut - 1][0] if cut else 0
        tap.apply(digest(*records[:cut]), clock_ms=clock_ms)
        tap.apply(digest(*records[cut:]), clock_ms=21_000)
        tap.apply(clock_ms=100_000)
        assert tap.figures == (0, None)


Partition = list[tuple[int, int, bool]]
"""Records of a tap in one partition: clock, number, whether it is a heartbeat."""


@st.composite
def taps(draw: st.DrawFn) -> list[Partition]:
    """A tap that writes to three partitions, some of its records late or never.

    Several records of one time, jumps of its numbers, and absences beyond the horizon
    come with it, from its very first record on.
    """
    pauses_ms = st.sampled_from(
        (0, 0, 1, 500, 5_000, 14_999, 15_000, 15_001, WINDOW_MS, HORIZON_MS + 1)
    )
    steps = draw(
        st.lists(
            st.tuples(
                pauses_ms,
                st.integers(0, 2),
                st.sampled_from(("frame", "frame", "frame", "lost", "late", "beat")),
                st.integers(1, 4),
                st.sampled_from((1, 1, 1, 1, MAX_HOLE)),
            ),
            max_size=25,
        )
    )
    written: list[tuple[int, int, int, int, bool]] = []
    at = seq = 0
    for place, (pause_ms, partition, what, behind, step) in enumerate(steps):
        at += pause_ms
        if what != "beat":
            seq += step
        if what != "lost":
            due = place + behind if what == "late" else place
            written.append((due, partition, at, seq, what == "beat"))
    partitions: list[Partition] = [[], [], []]
    for _, partition, time_ms, number, is_beat in sorted(written):
        read = partitions[partition]
        # The running clock, as a chunk of the partition gives it.
        clock_ms = max(time_ms, read[-1][0]) if read else time_ms
        read.append((clock_ms, number, is_beat))
    return partitions


def part(records: Partition) -> TapDigest:
    """The digest of consecutive records of one partition."""
    return digest(
        *((at, seq) for at, seq, is_beat in records if not is_beat),
        heartbeats=[(at, seq) for at, seq, is_beat in records if is_beat],
    )


@CAREFUL
@given(taps(), st.data())
def test_cutting_the_records_into_batches_changes_nothing(
    partitions: list[Partition], data: st.DataObject
) -> None:
    """Every batch has read at least what lies before its clock in each partition.

    Records at the clock itself come in this batch or in a later one. What is open
    then ends alike, too.
    """
    times = [at for records in partitions for at, *_ in records] or [0]
    end_ms = max(times) + data.draw(st.sampled_from((0, 15_000, 15_001)))
    whole = Tap()
    whole.apply(*map(part, partitions), clock_ms=end_ms)
    tap, begins = Tap(), [0] * len(partitions)
    clocks_ms = data.draw(st.lists(st.sampled_from(times), max_size=6))
    for clock_ms in sorted(clocks_ms):
        ends = []
        for records, begin in zip(partitions, begins, strict=True):
            before = sum(at < clock_ms for at, *_ in records)
            ends.append(data.draw(st.integers(max(begin, before), len(records))))
        batch = zip(partitions, begins, ends, strict=True)
        tap.apply(*(part(r[begin:end]) for r, begin, end in batch), clock_ms=clock_ms)
        begins = ends
    rest = zip(partitions, begins, strict=True)
    tap.apply(*(part(r[begin:]) for r, begin in rest), clock_ms=end_ms)
    assert tap.view.totals == whole.view.totals
    while whole.deadline_ms is not None:
        assert tap.deadline_ms == whole.deadline_ms
        clock_ms = whole.deadline_ms + 1
        for each in (whole, tap):
            each.apply(clock_ms=clock_ms)
        assert tap.view.totals == whole.view.totals
    assert tap.view.is_forgotten


# --- ties


@pytest.mark.parametrize("late", [(1_000, 3), (1_000, 7)])
def test_records_of_one_time_are_taken_together(
    tap: Tap, late: tuple[int, int]
) -> None:
    """For any order of partitions, also for the tap's first records."""
    whole = Tap()
    whole.apply(digest((1_000, 5)), digest(late), clock_ms=1_000)
    tap.apply(digest((1_000, 5)), clock_ms=1_000)
    tap.apply(digest(late), clock_ms=1_000)
    for each in (whole, tap):
        each.apply(clock_ms=16_001)
    assert tap.figures == whole.figures == (1, 16_000)


def test_record_at_the_clock_is_seen(tap: Tap) -> None:
    """Only its number waits."""
    tap.take((0, 1))
    assert tap.view.totals.last_seen_ms == START_MS
    tap.take((20_000, 2))
    assert tap.view.totals.last_seen_ms == START_MS + 20_000
    assert tap.figures == (0, 20_000)


def test_number_at_the_clock_comes_in_time_at_its_deadline(tap: Tap) -> None:
    """Although it is applied once the clock is past the deadline."""
    tap.take((0, 1), (1_000, 3))
    tap.take((16_000, 2))
    tap.apply(clock_ms=16_001)
    assert tap.figures == (0, None)


# --- spans


def test_silence_spans_from_record_to_record(tap: Tap) -> None:
    """The tap may have missed frames in it."""
    tap.take((0, 1), (15_000, 2), (40_000, 3))
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
    assert tap.spans == [(0, 25_000), (30_000, 45_001)]
    tap.take((45_001, 6), (60_000, 7), (65_000, 9))
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
        clock_ms=last_ms + 15_001,
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
    assert tap.view.totals == TapTotals(last_seen_ms=START_MS + back_ms)


def test_new_view_is_empty() -> None:
    """There is nothing to store."""
    assert TapView().is_forgotten
