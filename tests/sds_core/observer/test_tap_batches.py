"""One tap whose records come in batches, from several partitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tap_view import MAX_HOLE, TapDigest
from tests.support.frames import START_MS
from tests.support.observer.packed_tap import Tap
from tests.support.properties import CAREFUL
from tests.support.tap import digest

HORIZON_MS = DEFAULTS.horizon_ms
WINDOW_MS = DEFAULTS.verdict_window_ms


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
    """Only its number waits, and after a silence the tap stays silent until then."""
    tap.take((0, 1))
    assert tap.view.totals.last_seen_ms == START_MS
    tap.take((15_000, 2))
    assert tap.view.totals.last_seen_ms == START_MS + 15_000
    tap.take((35_000, 3))
    assert tap.view.totals.last_seen_ms == START_MS + 15_000
    tap.apply(clock_ms=35_001)
    assert tap.view.totals.last_seen_ms == START_MS + 35_000
    assert tap.figures == (0, 35_000)


def test_number_at_the_clock_comes_in_time_at_its_deadline(tap: Tap) -> None:
    """Although it is applied once the clock is past the deadline."""
    tap.take((0, 1), (1_000, 3))
    tap.take((16_000, 2))
    tap.apply(clock_ms=16_001)
    assert tap.figures == (0, None)
