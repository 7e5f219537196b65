"""Future records and ends of transactions hide no record and move no clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.offsets import TimedOffset
from sds_core.observer.record import MAX_AHEAD_MS
from tests.support.batches import (
    FUTURE_MS,
    WALL_MS,
    Reader,
    drained,
    ends,
    entries,
    listed,
    record_times,
)
from tests.support.properties import CAREFUL
from tests.support.topics import Entry, ListedTopic

# --- records from the future


def test_future_records_move_no_clock() -> None:
    """They are read, and T is the greatest time of the other records."""
    reader = drained([1_000, FUTURE_MS, 2_000], [1_500, FUTURE_MS])
    assert ends(reader.position) == [3, 2]
    assert reader.position.clock_ms == 2_000


def test_record_a_minute_ahead_is_not_a_future_record() -> None:
    """A record exactly at the limit moves the clock."""
    reader = drained([1_000, WALL_MS + MAX_AHEAD_MS])
    assert reader.position.clock_ms == WALL_MS + MAX_AHEAD_MS


def test_future_records_alone_are_read() -> None:
    """Also if they exceed one batch; T stays at zero."""
    reader = drained([FUTURE_MS] * 9, [FUTURE_MS] * 9, limit=4)
    assert ends(reader.position) == [9, 9]
    assert reader.position.clock_ms == 0


def test_partition_with_future_records_stays_aligned() -> None:
    """The index hides the records behind them, so the partition is scanned."""
    topic = ListedTopic([FUTURE_MS, *range(0, 40_000, 1_000)], range(0, 40_000, 500))
    reader = Reader(topic)
    reader.read_all([12], target=topic.admission().target())
    assert reader.position.clock_ms == 39_500
    assert max(reader.batches) <= 12


def test_scan_that_saw_only_the_future_holds_the_clock() -> None:
    """A second scan that found later records does not move T past the first."""
    topic = ListedTopic(
        [*[FUTURE_MS] * 10, 5], [FUTURE_MS, *range(1_000, 20_000, 1_000)]
    )
    reader = Reader(topic)
    assert reader.read_batch(5, target=topic.admission().target())
    assert reader.position.clock_ms == 0


def test_future_record_read_before_does_not_hide_the_records_behind_it() -> None:
    """Also after the wall time has reached its time."""
    topic = ListedTopic([1_000, FUTURE_MS], [1_000])
    reader = Reader(topic)
    reader.read_all([10])
    later_ms = FUTURE_MS + 500_000
    topic.append(0, *range(2_000, 60_000, 1_000), FUTURE_MS + 1_000)
    topic.append(1, *range(2_000, 60_000, 1_000), FUTURE_MS + 1_000)
    reader.read_all([10], later_ms)
    assert ends(reader.position) == [61, 60]
    assert reader.position.clock_ms == FUTURE_MS + 1_000


# --- transactions


def test_end_of_transaction_is_no_time() -> None:
    """It has the wall time of its commit, whatever the age of its records."""
    topic = ListedTopic([1_000, 2_000], [1_500])
    topic.append_marker(0, WALL_MS)
    reader = Reader(topic)
    reader.read_all([100])
    assert ends(reader.position) == [3, 1]
    assert reader.position.clock_ms == 1_500
    reader.read_all([100], target=topic.admission().target())
    assert reader.position.clock_ms == 2_000


def test_end_of_transaction_does_not_hide_the_records_behind_it() -> None:
    """Several transactions copy old records."""
    topic = ListedTopic([])
    for start_ms in range(0, 300_000, 100_000):
        topic.append(0, *range(start_ms, start_ms + 100_000, 10_000))
        topic.append_marker(0, WALL_MS - 400_000 + start_ms)
    topic.append(1, *range(0, 300_000, 5_000))
    reader = Reader(topic)
    reader.read_all([12], target=topic.admission().target())
    assert reader.position.clock_ms == 295_000


def test_open_transaction_is_not_read() -> None:
    """The greatest time inside it does not hide the newest record before it."""
    topic = ListedTopic([1_000, 2_000, 9_000], [8_000])
    topic.logs[0].open_from = 2
    reader = Reader(topic)
    reader.read_all([100])
    assert ends(reader.position) == [2, 1]
    assert reader.position.clock_ms == 2_000
    assert reader.position.partitions[0].newest_ms == 2_000
    topic.logs[0].open_from = None
    reader.read_all([100])
    assert ends(reader.position) == [3, 1]
    assert reader.position.clock_ms == 8_000


# --- lookups


def test_first_record_behind_a_future_one_is_found() -> None:
    """The partition is scanned, and the other one is not."""
    topic = ListedTopic([FUTURE_MS, 1_000, 2_000], [1_500, 3_000])
    found, times = record_times(topic).first_at_or_after(1_200)
    assert found == {0: TimedOffset(2, 2_000), 1: TimedOffset(0, 1_500)}
    assert list(times.scans) == [0]
    assert topic.scanned == 3


def test_scanned_partition_is_not_looked_up_again() -> None:
    """Its record times are known."""
    topic = ListedTopic([FUTURE_MS, 1_000, 2_000])
    _, times = record_times(topic).first_at_or_after(500)
    found, _ = times.first_at_or_after(1_500)
    assert found == {0: TimedOffset(2, 2_000)}
    assert (topic.lookups, topic.scanned) == (1, 3)


def test_scan_that_stops_early_limits_the_clock() -> None:
    """No time after its greatest one is known; a whole scan limits nothing."""
    topic = ListedTopic([FUTURE_MS, 1_000, 2_000])
    _, cut_off = record_times(topic, scan_rows=2).first_at_or_after(500)
    assert cut_off.latest_clock_ms(5_000) == 1_000
    assert cut_off.readable_ends() == {0: 2}
    _, whole = record_times(topic).first_at_or_after(500)
    assert whole.latest_clock_ms(5_000) == 5_000


def test_newest_time_is_that_of_the_newest_record_that_counts() -> None:
    """Neither a future record nor the end of a transaction counts."""
    topic = ListedTopic([1_000, FUTURE_MS], [2_000], [], [3_000])
    topic.append_marker(1, 500_000)
    times = record_times(topic)
    newest_ms, _ = times.newest_ms(topic.newest(topic.partitions()))
    assert newest_ms == {0: 1_000, 1: 2_000, 3: 3_000}


@CAREFUL
@given(
    st.lists(entries(), min_size=1, max_size=3),
    st.lists(st.integers(0, 120_000), min_size=1, max_size=6),
    st.integers(1, 20),
)
def test_lookup_changes_no_answer_to_the_next(
    partitions: list[list[Entry]], clocks_ms: list[int], scan_rows: int
) -> None:
    """The same record times give the same answers in any order of questions."""
    times = record_times(listed(partitions), scan_rows)
    answers = [times.first_at_or_after(clock_ms) for clock_ms in clocks_ms]
    again = [times.first_at_or_after(clock_ms) for clock_ms in reversed(clocks_ms)]
    assert answers == again[::-1]
    assert times.scans == {}


@CAREFUL
@given(
    st.lists(entries(), min_size=1, max_size=3),
    st.lists(st.integers(0, 120_000), min_size=1, max_size=6),
)
def test_lookup_of_a_scanned_topic_finds_the_first_record_that_counts(
    partitions: list[list[Entry]], clocks_ms: list[int]
) -> None:
    """It agrees with a search through all records."""
    topic = listed([[Entry(FUTURE_MS), *entries] for entries in partitions])
    _, times = record_times(topic).first_at_or_after(0)
    for clock_ms in clocks_ms:
        found, _ = times.first_at_or_after(clock_ms)
        for partition, log in enumerate(topic.logs):
            peak_ms, expected = 0, None
            for offset, entry in enumerate(log.entries):
                if entry.is_record and entry.time_ms < FUTURE_MS:
                    peak_ms = max(peak_ms, entry.time_ms)
                if entry.is_record and peak_ms >= clock_ms:
                    expected = TimedOffset(offset, peak_ms)
                    break
            assert found.get(partition) == expected
