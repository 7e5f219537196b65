"""Where batches end while the job catches up."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.offsets import TimedOffset
from sds_core.observer.ahead import LOOKAHEAD
from streaming.admission import BatchLimits
from streaming.batch_cut import aligned_end, cut_at, part_of
from streaming.position import PartitionPosition, Position, count_rows
from tests.support.batches import (
    WALL_MS,
    Reader,
    drained,
    ends,
    entries,
    listed,
    partition_times,
    record_times,
)
from tests.support.properties import CAREFUL
from tests.support.topics import Entry, ListedTopic

# --- alignment


def test_partitions_keep_in_step_on_catch_up() -> None:
    """A partition that is behind is read alone until it reaches the others."""
    topic = ListedTopic(
        range(100_000, 101_000, 10), range(0, 101_000, 1_000), [100_500]
    )
    reader = Reader(topic)
    target = topic.admission().target()
    while reader.position.clock_ms < 100_000:
        assert reader.read_batch(20, target=target)
        if reader.position.clock_ms < 100_000:
            assert reader.position.partitions[0].next_offset == 0
    reader.read_all([20], target=target)
    assert ends(reader.position) == [100, 101, 1]


def test_batches_are_at_least_three_quarters_full_on_catch_up() -> None:
    """With small batches, catching up is slow."""
    reader = drained(range(0, 900_000, 100), range(0, 900_000, 300), limit=1_000)
    assert min(reader.batches[:-1]) >= 750


def test_alignment_asks_the_broker_seldom() -> None:
    """Also for the first batch, whose records lie far from time zero."""
    start_ms = 1_700_000_000_000
    topic = ListedTopic(range(start_ms, start_ms + 50_000, 10))
    end = topic.admission(1_000).plan(Position(), start_ms + 50_000)
    assert 750 <= sum(ends(end)) <= 1_000
    assert topic.lookups <= 12
    # Whether two entries are records, and those behind the last, which tell its time.
    assert topic.scanned <= 2 + LOOKAHEAD


def test_burst_of_one_time_is_cut() -> None:
    """T stays at its time until the whole burst is read."""
    reader = drained([1_000] * 25, [1_000] * 15, limit=10)
    assert reader.position.clock_ms == 1_000
    assert sum(reader.batches) == 40
    assert max(reader.batches) == 10


def test_limit_of_one_record_reads_on() -> None:
    """Every batch reads something, however small the limit."""
    reader = drained([1_000, 1_000, 5_000], [2_000], limit=1)
    assert ends(reader.position) == [3, 1]
    assert reader.position.clock_ms == 5_000


def test_late_records_beyond_the_limit_move_no_clock() -> None:
    """The records of a late partition are read, and T stays."""
    topic = ListedTopic([50_000])
    reader = Reader(topic)
    reader.read_all([10])
    topic.append(1, *range(0, 30_000, 1_000))
    topic.append(0, 51_000)
    assert reader.read_batch(10)
    assert reader.position.clock_ms == 50_000
    assert ends(reader.position) == [1, 10]
    reader.read_all([10])
    assert ends(reader.position) == [2, 30]


def test_byte_limit_counts_by_the_mean_size() -> None:
    """600 records of 1,000 bytes do not fit into 300,000 bytes."""
    topic = ListedTopic(range(600))
    limits = BatchLimits(rows=10_000, size_bytes=300_000)
    end = topic.admission(limits).plan(Position(), WALL_MS)
    assert 225 <= sum(ends(end)) <= 300


def test_few_records_are_not_sampled() -> None:
    """Sampling their size would cost more than reading them."""
    limits = BatchLimits(rows=10_000, size_bytes=1)
    end = ListedTopic(range(500)).admission(limits).plan(Position(), WALL_MS)
    assert ends(end) == [500]


def test_partition_held_back_by_a_silent_one_is_read_all_the_same() -> None:
    """Reading continues although more than a batch lies after a T that stands."""
    topic = ListedTopic([1_000], range(2_000, 22_000, 100))
    reader = Reader(topic)
    reader.read_all([30])
    assert ends(reader.position) == [1, 200]
    assert reader.position.clock_ms == 1_000


def test_records_that_come_during_the_plan_are_not_scanned() -> None:
    """A busy topic always has some."""

    class BusyTopic(ListedTopic):
        def newest(self, partitions: Collection[int]) -> dict[int, TimedOffset]:
            self.append(0, self.logs[0].entries[-1].time_ms + 100)
            return super().newest(partitions)

    topic = BusyTopic([50_000, 51_000])
    start = Position(49_000, partitions={0: PartitionPosition(1, 50_000)})
    end = topic.admission().plan(start, WALL_MS)
    assert end.partitions[0] == PartitionPosition(3, 51_100, 1, WALL_MS)
    assert end.clock_ms == 51_100
    assert topic.scanned == 0


@CAREFUL
@given(
    st.lists(entries(), min_size=1, max_size=3),
    st.integers(1, 20),
    st.integers(0, 120_000),
)
def test_aligned_end_fits_and_ends_at_its_time(
    partitions: list[list[Entry]], row_limit: int, latest_ms: int
) -> None:
    """Reads no more than the limit, and T lies between the start and the latest."""
    times = record_times(listed(partitions), row_limit)
    end = aligned_end(times, latest_ms, row_limit)
    assert 0 <= count_rows(dict.fromkeys(end.ends, 0), end.ends) <= row_limit
    assert 0 <= end.clock_ms <= latest_ms
    assert aligned_end(times, latest_ms, row_limit) == end


@CAREFUL
@given(
    st.lists(partition_times(futures=False), min_size=1, max_size=3),
    st.integers(1, 20),
)
def test_aligned_end_is_nearly_full(times: list[list[int]], row_limit: int) -> None:
    """Three quarters full, or the records of the next millisecond do not fit."""
    topic = ListedTopic(*times)
    known = record_times(topic, row_limit)
    end = aligned_end(known, WALL_MS, row_limit)
    rows = count_rows(dict.fromkeys(end.ends, 0), end.ends)
    if end.clock_ms < WALL_MS and rows < max(1, row_limit * 3 // 4):
        assert cut_at(known, end.clock_ms + 1).rows > row_limit


@CAREFUL
@given(
    st.lists(entries(), min_size=1, max_size=3),
    st.lists(st.integers(0, 120_000), min_size=2, max_size=6),
)
def test_cut_does_not_depend_on_cuts_before_it(
    partitions: list[list[Entry]], clocks_ms: list[int]
) -> None:
    """Cuts of the same record times are the same in any order."""
    times = record_times(listed(partitions), scan_rows=5)
    cuts = {clock_ms: cut_at(times, clock_ms) for clock_ms in clocks_ms}
    for clock_ms in sorted(cuts, reverse=True):
        assert cut_at(times, clock_ms) == cuts[clock_ms]


def test_part_of_fills_the_lowest_partition_first() -> None:
    """So the same records are chosen when the batch is planned again."""
    assert part_of({0: 1, 1: 5}, {0: 3, 1: 9}, 3) == {0: 3, 1: 6}
