"""One tap: its numbers, its silences and its heartbeats (observer model, 8)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.observer import blob
from sds_core.observer.digest import NO_SEQ
from sds_core.observer.tap_view import MAX_HOLE, TapDigest, TapView
from tests.support.frames import START_MS
from tests.support.properties import CAREFUL


def digest(
    *records: tuple[int, int], heartbeats: Sequence[tuple[int, int]] = ()
) -> TapDigest:
    """Frames and heartbeats of the tap in one partition: relative time and number."""
    columns = [
        array("q", values).tobytes()
        for rows in (records, heartbeats)
        for values in ([START_MS + at for at, _ in rows], [seq for _, seq in rows])
    ]
    return TapDigest(*columns)


class Tap:
    """A view that is packed into its blob and unpacked again at every call."""

    def __init__(self) -> None:
        self._packed = TapView().to_blob()

    @property
    def view(self) -> TapView:
        """The view."""
        return TapView.from_blob(blob.VERSION, self._packed)

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


@pytest.fixture
def tap() -> Tap:
    """A tap of which nothing is known."""
    return Tap()


def test_numbers_without_a_hole_are_healthy(tap: Tap) -> None:
    """In whatever order they lie in one batch, over all partitions."""
    tap.apply(
        digest((0, 1), (2_000, 3)), digest((1_000, 2), (3_000, 4)), clock_ms=3_000
    )
    tap.apply(clock_ms=100_000)
    assert tap.figures == (0, None)
    assert tap.view.totals.last_seen_ms == START_MS + 3_000


def test_heartbeats_keep_a_tap_alive_and_repeat_its_last_number(tap: Tap) -> None:
    """They are exempt from duplicates: none opens a hole or closes one."""
    beats = [(5_000, 7), (10_000, 7), (20_000, 7)]
    tap.apply(digest((0, 7), (30_000, 8), heartbeats=beats), clock_ms=30_000)
    tap.apply(clock_ms=100_000)
    assert tap.figures == (0, None)
    assert tap.view.totals.last_seen_ms == START_MS + 30_000


def test_heartbeat_tells_of_the_frames_before_it(tap: Tap) -> None:
    """The number that it repeats was given to a frame, which has to come."""
    tap.apply(digest((0, 7), heartbeats=[(5_000, 9)]), clock_ms=5_000)
    assert tap.view.next_deadline_ms == START_MS + 20_000
    tap.apply(digest((20_000, 8)), clock_ms=20_001)
    assert tap.figures == (1, 20_000)


def test_frame_comes_before_the_heartbeat_of_the_same_time(tap: Tap) -> None:
    """In whatever partition they lie."""
    tap.apply(digest(heartbeats=[(0, 7)]), digest((0, 7)), clock_ms=0)
    tap.apply(digest(heartbeats=[(1_000, 8)]), digest((1_000, 8)), clock_ms=1_000)
    assert tap.view.next_deadline_ms is None


@pytest.mark.parametrize(("silent_ms", "hole"), [(15_000, None), (15_001, 15_001)])
def test_silence_of_more_than_fifteen_seconds_is_a_hole(
    tap: Tap, silent_ms: int, hole: int | None
) -> None:
    """Between two consecutive records, found by the second of them."""
    tap.take((0, 1))
    tap.take((silent_ms, 2))
    assert tap.figures == (0, hole)


def test_first_record_is_no_silence(tap: Tap) -> None:
    """Nothing is known of the time before it."""
    tap.take((0, 1))
    assert tap.figures == (0, None)


def test_silence_at_the_end_is_not_yet_between_two_records(tap: Tap) -> None:
    """The clock alone finds no hole between two records."""
    tap.take((0, 1))
    tap.apply(clock_ms=1_000_000)
    assert tap.figures == (0, None)
    assert tap.view.next_deadline_ms is None


def test_missing_numbers_count_when_absent_for_fifteen_seconds(tap: Tap) -> None:
    """By the clock alone: at 15 s they may still come, a millisecond later not."""
    tap.take((0, 1), (1_000, 5))
    assert tap.view.next_deadline_ms == START_MS + 16_000
    tap.apply(clock_ms=16_000)
    assert tap.figures == (0, None)
    tap.apply(clock_ms=16_001)
    assert tap.figures == (3, 16_000)
    assert tap.view.next_deadline_ms is None


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
    """From another partition, at the deadline at the latest, in any order."""
    tap.take((0, 1), (1_000, 5))
    for seq in come:
        tap.take((16_000, seq))
    tap.apply(clock_ms=16_001)
    assert tap.figures[0] == missing


def test_number_that_comes_too_late_takes_nothing_back(tap: Tap) -> None:
    """It was missing when it was counted."""
    tap.take((0, 1), (1_000, 3), (16_000, 3))
    tap.apply(clock_ms=16_001)
    tap.take((16_002, 2))
    assert tap.figures == (1, 16_000)


def test_each_hole_has_its_own_deadline(tap: Tap) -> None:
    """The older one counts first."""
    tap.take((0, 1), (1_000, 3), (2_000, 6))
    tap.apply(clock_ms=16_001)
    assert tap.figures == (1, 16_000)
    tap.apply(clock_ms=17_001)
    assert tap.figures == (3, 17_000)


def test_records_themselves_move_the_clock(tap: Tap) -> None:
    """A hole counts before a later record is taken."""
    tap.take((0, 1), (1_000, 3), (15_000, 4), (16_001, 2))
    assert tap.figures == (1, 16_000)


def test_first_number_opens_no_hole(tap: Tap) -> None:
    """A tap is met in the middle of its numbers."""
    tap.take((0, 1_000))
    tap.apply(clock_ms=100_000)
    assert tap.figures == (0, None)


def test_number_zero_is_a_number(tap: Tap) -> None:
    """The numbers after it are missing if they do not come."""
    tap.take((0, 0), (1_000, 2))
    tap.apply(clock_ms=100_000)
    assert tap.figures[0] == 1


def test_records_without_numbers_keep_the_tap_alive(tap: Tap) -> None:
    """They are records of it, and open no holes."""
    tap.take((0, 1), (10_000, NO_SEQ), (20_000, 2))
    tap.apply(clock_ms=100_000)
    assert tap.figures == (0, None)


@pytest.mark.parametrize(
    ("missing", "counted"), [(MAX_HOLE - 1, MAX_HOLE - 1), (MAX_HOLE, 0)]
)
def test_huge_jump_is_a_tap_that_began_anew(
    tap: Tap, missing: int, counted: int
) -> None:
    """So many records are not lost at once."""
    tap.take((0, 1), (1_000, 2 + missing))
    tap.apply(clock_ms=100_000)
    assert tap.figures[0] == counted


def test_two_batches_at_an_aligned_clock_are_as_one() -> None:
    """Wherever the admission time cuts the records of two partitions."""
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
    """Another partition may still bring the numbers between them."""
    tap.apply(digest((0, 1), (2_000, 5), (20_000, 6)), clock_ms=1_000)
    assert tap.view.totals.last_seen_ms == START_MS
    tap.apply(digest((1_000, 2), (1_100, 3), (1_200, 4)), clock_ms=20_000)
    tap.apply(clock_ms=100_000)
    # The silence before the last record is one all the same.
    assert tap.figures == (0, 20_000)


def test_late_record_arrives_with_the_clock_of_its_partition(tap: Tap) -> None:
    """Its number comes when it is read; one late by more than 15 s was missing."""
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
    """A tap that writes to two partitions, some of its records late or never."""
    pauses_ms = st.sampled_from((1, 500, 5_000, 14_999, 15_000, 15_001, 20_000))
    steps = draw(
        st.lists(
            st.tuples(
                pauses_ms,
                st.integers(0, 1),
                st.sampled_from(("frame", "frame", "frame", "lost", "late", "beat")),
                st.integers(1, 4),
            ),
            max_size=25,
        )
    )
    written: list[tuple[int, int, int, int, bool]] = []
    at = seq = 0
    for place, (pause_ms, partition, what, behind) in enumerate(steps):
        if place == 0:
            # A tap is met by one record: of two at one time the first read counts.
            what = "frame"
        at += pause_ms
        seq += what != "beat"
        if what != "lost":
            due = place + behind if what == "late" else place
            written.append((due, partition, at, seq, what == "beat"))
    partitions: list[Partition] = [[], []]
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
    """Every batch has read at least what lies before its clock in each partition."""
    times = [at for records in partitions for at, *_ in records] or [0]
    end_ms = max(times) + data.draw(st.sampled_from((0, 15_000, 15_001)))
    whole = Tap()
    whole.apply(*map(part, partitions), clock_ms=end_ms)
    tap, begins = Tap(), [0, 0]
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
