"""How far batches read: unit tests and properties over topics of plain times."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TimedOffset, TopicOffsets
from connectors.kafka.settings import Client, RecordsLost
from sds_core.observer.record import MAX_AHEAD_MS, is_future
from streaming.admission import LATE_MS, Admission, Target
from streaming.position import PartitionPosition, Position
from streaming.settings import BatchLimits, Window
from tests.support.kafka import TopicMaker
from tests.support.topics import Entry, ListedTopic

WALL_MS = 1_000_000
"""Wall time of most plans here; the records' times lie below it."""
FUTURE_MS = WALL_MS + MAX_AHEAD_MS + 1


@dataclass
class Reader:
    """Reads a topic batch by batch, and checks each plan against the records.

    Attributes:
        topic: What it reads.
        position: Where it stands.
        clocks: Clock of the chunk at each record read: (partition, offset) -> ms.
        peaks: Greatest time of the records read of each partition, the future ones
            apart.
        batches: Rows of each batch so far.
        window: Of record times; None for all.
    """

    topic: ListedTopic
    position: Position = field(default_factory=Position)
    clocks: dict[tuple[int, int], int] = field(default_factory=dict)
    peaks: dict[int, int] = field(default_factory=dict)
    batches: list[int] = field(default_factory=list)
    window: Window | None = None

    def read_batch(
        self,
        limit: int,
        wall_ms: int = WALL_MS,
        target: Target | None = None,
        *,
        trusted_ms: int = 0,
    ) -> bool:
        """Plan and read one batch; False if there was nothing to do.

        Args:
            limit: Rows.
            wall_ms: Wall time of its admission.
            target: Of a run that drains the topic.
            trusted_ms: So far ahead of the records' times the ends of transactions
                may drive the clock.
        """
        start = self.position
        admission = replace(self.topic.admission(limit), window=self.window)
        end = admission.plan(start, wall_ms, target)
        assert admission.plan(start, wall_ms, target) == end, "not the same again"
        assert Position.from_json(end.to_json()) == end
        self.position = end
        if end == start:
            return False
        self._read(start, end)
        assert end.admitted_ms == wall_ms
        assert end.clock_ms >= start.clock_ms
        if end.clock_ms > start.clock_ms:
            self._check_records_before_the_clock_are_read(wall_ms, target, trusted_ms)
        for partition, here in end.partitions.items():
            told = max(end.clock_ms, here.newest_ms)
            true = max(end.clock_ms, self.peaks.get(partition, 0))
            assert true <= told <= true + trusted_ms
        assert self.batches[-1] <= limit
        return True

    def read_all(
        self,
        limits: Sequence[int],
        wall_ms: int = WALL_MS,
        target: Target | None = None,
        *,
        trusted_ms: int = 0,
    ) -> None:
        """Read until there is nothing to do, with each of some limits in turn."""
        entries = sum(len(log.entries) for log in self.topic.logs)
        for number in count():
            # A batch reads a record, or moves the clock alone, which is rare.
            assert number <= 2 * entries + 3, "it does not end"
            limit = limits[number % len(limits)]
            if not self.read_batch(limit, wall_ms, target, trusted_ms=trusted_ms):
                return

    def _read(self, start: Position, end: Position) -> None:
        rows = 0
        for partition, after in end.partitions.items():
            before = start.partitions.get(
                partition, PartitionPosition(after.batch_start)
            )
            assert after.next_offset >= after.batch_start == before.next_offset
            rows += after.next_offset - after.batch_start
            clock_ms = max(start.clock_ms, before.newest_ms)
            for at in self._records(partition, after.batch_start, after.next_offset):
                time_ms = at.timestamp_ms
                if self.window is not None:
                    time_ms = min(time_ms, self.window.last_ms)
                if not is_future(at.timestamp_ms, end.admitted_ms):
                    clock_ms = max(clock_ms, time_ms)
                    self.peaks[partition] = max(self.peaks.get(partition, 0), time_ms)
                if self.window is None or at.timestamp_ms in self.window:
                    self.clocks[partition, at.offset] = clock_ms
        assert end.records == start.records + rows
        self.batches.append(rows)

    def _check_records_before_the_clock_are_read(
        self, wall_ms: int, target: Target | None, trusted_ms: int
    ) -> None:
        """A record before T is unread only if it is late.

        That is, behind one of its partition with a greater or equal time.
        """
        for partition, log in enumerate(self.topic.logs):
            end = log.end
            if target is not None:
                end = min(end, target.ends.get(partition, 0))
            unread = self.position.partitions[partition].next_offset
            peak_ms = self.peaks.get(partition, 0)
            for at in self._records(partition, unread, end):
                if not is_future(at.timestamp_ms, wall_ms) and (
                    at.timestamp_ms > peak_ms
                ):
                    assert at.timestamp_ms >= self.position.clock_ms - trusted_ms
                    break

    def _records(self, partition: int, start: int, end: int) -> Iterator[TimedOffset]:
        for offset in range(start, end):
            entry = self.topic.logs[partition].entries[offset]
            if entry.is_record:
                yield TimedOffset(offset, entry.time_ms)


def drained(*times: Sequence[int], limit: int = 4) -> Reader:
    """Read topics of these times to their end."""
    topic = ListedTopic(*times)
    reader = Reader(topic)
    reader.read_all([limit], target=topic.admission().target())
    return reader


def replayed(topic: ListedTopic, window: Window, limits: Sequence[int]) -> Reader:
    """Drain a window of a topic."""
    admission = replace(topic.admission(), window=window)
    target = admission.target()
    begins = topic.first_at_or_after(topic.partitions(), window.first_ms)
    start = Position(
        window.first_ms,
        partitions={
            partition: PartitionPosition(
                begins[partition].offset if partition in begins else log.end
            )
            for partition, log in enumerate(topic.logs)
        },
    )
    reader = Reader(topic, start, window=window)
    reader.read_all(limits, target=target)
    return reader


def ends(position: Position) -> list[int]:
    """The next offset of each partition."""
    return [offset for _, offset in sorted(position.next_offsets().items())]


# --- all fits


def test_batch_that_fits_is_read_to_the_end() -> None:
    """T is then the least of the newest times."""
    topic = ListedTopic([1_000, 2_000], [1_500])
    end = topic.admission().plan(Position(), WALL_MS)
    assert ends(end) == [2, 1]
    assert end.clock_ms == 1_500
    assert end.admitted_ms == WALL_MS
    assert [p.newest_ms for p in end.partitions.values()] == [2_000, 1_500]


def test_plan_without_anything_new_is_the_start() -> None:
    """So that Spark makes no batch of it, whatever wall time does."""
    topic = ListedTopic([1_000, 2_000], [1_500], [])
    admission = topic.admission()
    end = admission.plan(Position(), WALL_MS)
    assert admission.plan(end, WALL_MS + 5_000) is not None
    assert admission.plan(end, WALL_MS + 5_000) == end


def test_empty_topic_places_its_partitions() -> None:
    """Nothing is read and no clock moves."""
    reader = Reader(ListedTopic([], []))
    assert reader.read_batch(10)
    assert ends(reader.position) == [0, 0]
    assert (reader.position.clock_ms, reader.position.records) == (0, 0)
    assert not reader.read_batch(10, WALL_MS + 60_000)


def test_silent_partition_holds_the_clock_for_thirty_seconds() -> None:
    """Of wall time: its records may be on their way. Then T goes on without it."""
    topic = ListedTopic([100_000, 200_000], [100_500])
    reader = Reader(topic)
    reader.read_all([100])
    assert reader.position.clock_ms == 100_500
    topic.append(0, 210_000)
    reader.read_all([100], WALL_MS + 30_000)
    assert reader.position.clock_ms == 100_500
    reader.read_all([100], WALL_MS + 30_001)
    assert reader.position.clock_ms == 210_000


def test_clock_does_not_wait_for_partitions_that_are_all_silent() -> None:
    """In the end it stands at the greatest time."""
    reader = Reader(ListedTopic([1_000, 9_000], [2_000]))
    reader.read_all([100])
    reader.read_all([100], WALL_MS + 40_000)
    assert reader.position.clock_ms == 9_000


def test_partition_without_records_does_not_hold_the_clock() -> None:
    """It has no newest record that T could not pass."""
    reader = Reader(ListedTopic([1_000, 2_000], []))
    reader.read_all([100])
    assert reader.position.clock_ms == 2_000


def test_partition_emptied_by_retention_still_holds_the_clock() -> None:
    """What was read of it counts, though the broker has forgotten it."""
    topic = ListedTopic([100_000, 110_000], [105_000])
    reader = Reader(topic)
    reader.read_all([100])
    topic.logs[1].first = 1
    topic.append(0, 120_000)
    reader.read_all([100])
    assert reader.position.clock_ms == 105_000


def test_drained_topic_ends_at_its_greatest_time() -> None:
    """Wherever the partitions end."""
    reader = drained([1_000, 90_000], [1_500, 200_000, 150_000], [])
    assert reader.position.clock_ms == 200_000
    assert ends(reader.position) == [2, 3, 0]


# --- alignment


def test_partitions_keep_in_step_on_catch_up() -> None:
    """A partition behind is read alone until it meets the others."""
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
    """Small batches would catch up slowly."""
    reader = drained(range(0, 900_000, 100), range(0, 900_000, 300), limit=1_000)
    assert min(reader.batches[:-1]) >= 750


def test_alignment_asks_the_broker_seldom() -> None:
    """Also from the very first record on, which lies far from time zero."""
    start_ms = 1_700_000_000_000
    topic = ListedTopic(range(start_ms, start_ms + 50_000, 10))
    end = topic.admission(1_000).plan(Position(), start_ms + 50_000)
    assert 750 <= sum(ends(end)) <= 1_000
    assert topic.lookups <= 12
    assert topic.scanned <= 2


def test_burst_of_one_time_is_cut() -> None:
    """T stays at its time until all of it is read."""
    reader = drained([1_000] * 25, [1_000] * 15, limit=10)
    assert reader.position.clock_ms == 1_000
    assert sum(reader.batches) == 40
    assert max(reader.batches) == 10


def test_limit_of_one_record_reads_on() -> None:
    """However small the limit, something is read."""
    reader = drained([1_000, 1_000, 5_000], [2_000], limit=1)
    assert ends(reader.position) == [3, 1]
    assert reader.position.clock_ms == 5_000


def test_late_records_beyond_the_limit_move_no_clock() -> None:
    """A partition that comes late is read behind the clock."""
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
    """600 records of 1,000 bytes do not fit into 300,000."""
    topic = ListedTopic(range(600))
    limits = BatchLimits(rows=10_000, size_bytes=300_000)
    end = topic.admission(limits).plan(Position(), WALL_MS)
    assert 225 <= sum(ends(end)) <= 300


def test_few_records_are_not_sampled() -> None:
    """To ask for their size would cost more than to read them."""
    limits = BatchLimits(rows=10_000, size_bytes=1)
    end = ListedTopic(range(500)).admission(limits).plan(Position(), WALL_MS)
    assert ends(end) == [500]


def test_partition_held_back_by_a_silent_one_is_read_all_the_same() -> None:
    """More than a batch behind a clock that stands is no reason to stop."""
    topic = ListedTopic([1_000], range(2_000, 22_000, 100))
    reader = Reader(topic)
    reader.read_all([30])
    assert ends(reader.position) == [1, 200]
    assert reader.position.clock_ms == 1_000


def test_records_that_come_during_the_plan_are_not_scanned() -> None:
    """On a busy topic there always are some."""

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


# --- records from the future


def test_future_records_move_no_clock() -> None:
    """They are read, and T is the greatest time of the others."""
    reader = drained([1_000, FUTURE_MS, 2_000], [1_500, FUTURE_MS])
    assert ends(reader.position) == [3, 2]
    assert reader.position.clock_ms == 2_000


def test_record_a_minute_ahead_is_none_of_the_future() -> None:
    """The limit itself is allowed."""
    reader = drained([1_000, WALL_MS + MAX_AHEAD_MS])
    assert reader.position.clock_ms == WALL_MS + MAX_AHEAD_MS


def test_future_records_alone_are_read() -> None:
    """More than fit into one batch, and T stays at zero."""
    reader = drained([FUTURE_MS] * 9, [FUTURE_MS] * 9, limit=4)
    assert ends(reader.position) == [9, 9]
    assert reader.position.clock_ms == 0


def test_partition_with_future_records_stays_aligned() -> None:
    """The broker's index cannot see behind them: they must be looked through."""
    topic = ListedTopic([FUTURE_MS, *range(0, 40_000, 1_000)], range(0, 40_000, 500))
    reader = Reader(topic)
    reader.read_all([12], target=topic.admission().target())
    assert reader.position.clock_ms == 39_500
    assert max(reader.batches) <= 12


def test_scan_that_saw_only_the_future_holds_the_clock() -> None:
    """Another that saw more does not let it go again."""
    topic = ListedTopic(
        [*[FUTURE_MS] * 10, 5], [FUTURE_MS, *range(1_000, 20_000, 1_000)]
    )
    reader = Reader(topic)
    assert reader.read_batch(5, target=topic.admission().target())
    assert reader.position.clock_ms == 0


def test_future_record_read_before_does_not_hide_the_records_behind_it() -> None:
    """Once wall time has reached it, it looks like a time that was read."""
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
    """It has the wall time of its commit, however old the records are."""
    topic = ListedTopic([1_000, 2_000], [1_500])
    topic.append_marker(0, WALL_MS)
    reader = Reader(topic)
    reader.read_all([100])
    assert ends(reader.position) == [3, 1]
    assert reader.position.clock_ms == 1_500
    reader.read_all([100], target=topic.admission().target())
    assert reader.position.clock_ms == 2_000


def test_end_of_transaction_does_not_hide_the_records_behind_it() -> None:
    """Old records of several transactions, copied in one go."""
    topic = ListedTopic([])
    for start_ms in range(0, 300_000, 100_000):
        topic.append(0, *range(start_ms, start_ms + 100_000, 10_000))
        topic.append_marker(0, WALL_MS - 400_000 + start_ms)
    topic.append(1, *range(0, 300_000, 5_000))
    reader = Reader(topic)
    reader.read_all([12], target=topic.admission().target())
    assert reader.position.clock_ms == 295_000


def test_open_transaction_is_not_read() -> None:
    """Nor does the greatest time within it hide what is newest before it."""
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


# --- partitions added, records lost


def test_added_partition_is_read_from_its_first_record() -> None:
    """Also if retention has eaten the first ones meanwhile."""
    topic = ListedTopic([1_000])
    reader = Reader(topic)
    reader.read_all([10])
    topic.append(1, 1_100, 1_200, 1_300)
    topic.logs[1].first = 1
    reader.read_all([10])
    assert reader.position.partitions[1] == PartitionPosition(3, 1_300, 1, WALL_MS)


def test_target_holds_no_partition_added_after_it() -> None:
    """Such a partition is placed at its beginning and left alone."""
    topic = ListedTopic([1_000, 2_000])
    target = topic.admission().target()
    topic.append(0, 3_000)
    topic.append(1, 500, 600)
    reader = Reader(topic)
    reader.read_all([10], target=target)
    assert ends(reader.position) == [2, 0]
    assert reader.position.clock_ms == 2_000
    reader.read_all([10])
    assert ends(reader.position) == [3, 2]


def test_target_behind_the_start_is_nothing_to_do() -> None:
    """As when a run is started again that has read on since."""
    topic = ListedTopic([1_000, 2_000, 3_000])
    reader = Reader(topic)
    reader.read_all([10])
    assert not reader.read_batch(10, target=Target({0: 1}))
    assert ends(reader.position) == [3]


def test_records_beyond_the_target_are_not_scanned_while_catching_up() -> None:
    """Only the last batch must know the greatest time exactly."""
    topic = ListedTopic(range(0, 100_000, 100))
    target = topic.admission().target()
    topic.append(0, 200_000)
    reader = Reader(topic)
    reader.read_all([100], target=target)
    assert reader.position.clock_ms == 99_900
    assert topic.scanned <= 300


def lost(topic: ListedTopic, start: Position) -> RecordsLost:
    """The error of a plan that finds records gone."""
    with pytest.raises(RecordsLost) as caught:
        topic.admission().plan(start, WALL_MS)
    return caught.value


def test_records_gone_by_retention_are_an_error() -> None:
    """It says which."""
    topic = ListedTopic([1_000, 2_000], [1_000, 2_000, 3_000, 4_000])
    reader = Reader(topic)
    reader.read_batch(2)
    assert ends(reader.position) == [1, 1]
    topic.logs[1].first = 3
    error = lost(topic, reader.position)
    assert (error.topic, error.partition) == ("frames", 1)
    assert (error.first, error.end) == (1, 3)


def test_retention_of_records_that_were_read_is_no_loss() -> None:
    """Whatever was read may go, to the last one."""
    topic = ListedTopic([1_000, 2_000])
    reader = Reader(topic)
    reader.read_all([10])
    topic.logs[0].first = 2
    assert not reader.read_batch(10)
    topic.append(0, 3_000)
    reader.read_all([10])
    assert reader.position.clock_ms == 3_000


def test_skipped_records_are_counted() -> None:
    """The batch then begins where the topic does."""
    topic = ListedTopic([1_000, 2_000, 3_000, 4_000], [1_000, 2_000])
    start = replace(topic.admission(2).plan(Position(), WALL_MS), skipped=5)
    topic.logs[0].first = 3
    end = topic.admission(skip_lost=True).plan(start, WALL_MS)
    assert end.skipped == 7
    assert end.partitions[0] == PartitionPosition(4, 4_000, 3, WALL_MS)
    assert end.partitions[1] == PartitionPosition(2, 2_000, 1, WALL_MS)


def test_topic_made_anew_is_an_error() -> None:
    """The offsets that were read before are not those of its records."""
    start = ListedTopic([1_000] * 5).admission().plan(Position(), WALL_MS)
    error = lost(ListedTopic([2_000, 3_000]), start)
    assert (error.partition, error.first, error.end) == (0, 2, 5)


def test_topic_made_anew_with_fewer_partitions_is_an_error() -> None:
    """No other way leads there."""
    start = ListedTopic([1_000], [1_000] * 4).admission().plan(Position(), WALL_MS)
    error = lost(ListedTopic([1_000]), start)
    assert (error.partition, error.first, error.end) == (1, 0, 4)


def test_topic_made_anew_is_read_from_its_beginning_if_told_so() -> None:
    """T goes on from where it was."""
    start = ListedTopic([5_000] * 5, [6_000]).admission().plan(Position(), WALL_MS)
    topic = ListedTopic([2_000, 7_000])
    end = topic.admission(skip_lost=True).plan(start, WALL_MS)
    assert end.partitions == {0: PartitionPosition(2, 7_000, 0, WALL_MS)}
    assert end.clock_ms == 7_000
    assert end.skipped == 0


# --- a window of record times


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_clock_ends_with_the_window_that_the_topic_passes(limit: int) -> None:
    """Deadlines up to its end then have fired, though no record lies there."""
    topic = ListedTopic(range(10_000, 90_000, 1_000), [12_500, 50_000])
    reader = replayed(topic, Window(20_000, 40_500), [limit])
    assert sorted(reader.clocks) == [(0, offset) for offset in range(10, 31)]
    assert reader.position.clock_ms == 40_500


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_clock_ends_with_the_topic_that_does_not_pass_the_window(limit: int) -> None:
    """As without a window."""
    topic = ListedTopic(range(10_000, 90_000, 1_000), [12_500, 50_000])
    reader = replayed(topic, Window(20_000, 200_000), [limit])
    assert sorted(reader.clocks) == [(0, n) for n in range(10, 80)] + [(1, 1)]
    assert reader.position.clock_ms == 89_000


def test_records_of_a_window_are_looked_for_an_hour_behind_it() -> None:
    """Neither a late one is missed, nor all that lies behind a wrong clock."""
    end_ms = 20_000
    topic = ListedTopic(
        [10_000, end_ms + LATE_MS, 11_000, end_ms + LATE_MS + 1, 12_000],
        [13_000, end_ms + 60_000],
    )
    admission = replace(topic.admission(), window=Window(10_000, end_ms))
    assert admission.target() == Target({0: 3, 1: 2})
    assert sorted(replayed(topic, Window(10_000, end_ms), [2]).clocks) == [
        (0, 0),
        (0, 2),
        (1, 0),
    ]


def test_end_of_transaction_ends_no_window() -> None:
    """It has the wall time of its commit, whatever lies behind it."""
    topic = ListedTopic([10_000])
    topic.append_marker(0, 20_000 + LATE_MS + 1)
    topic.append(0, 12_000)
    reader = replayed(topic, Window(10_000, 20_000), [10])
    assert sorted(reader.clocks) == [(0, 0), (0, 2)]


def test_what_lies_behind_a_window_is_not_scanned() -> None:
    """That its newest record is beyond the target says enough."""
    last_ms = 900_000
    topic = ListedTopic(range(800_000, last_ms + 3 * LATE_MS, 60_000))
    window = Window(810_000, last_ms)
    admission = replace(topic.admission(), window=window)
    target = admission.target()
    topic.scanned = 0
    start = Position(window.first_ms, partitions={0: PartitionPosition(1)})
    wall_ms = last_ms + 4 * LATE_MS
    end = admission.plan(start, wall_ms, target)
    assert (end.clock_ms, ends(end)) == (last_ms, [target.ends[0]])
    # Whether the newest is a record.
    assert topic.scanned == 1


# --- Kafka itself


@pytest.mark.kafka
def test_kafka_gives_the_same_plans(kafka_topic: TopicMaker) -> None:
    """As the lists do that stand for it in all tests here."""
    partitions = [
        [*range(0, 90_000, 1_000), FUTURE_MS, 50_000, 95_000],
        [*[20_000] * 30, *range(21_000, 80_000, 500)],
        [],
        [5_000, 70_000, 60_000],
    ]
    listed, topic = ListedTopic(*partitions), kafka_topic(4)
    for partition, times in enumerate(partitions):
        # confluent-kafka takes a time of 0 for none.
        listed.logs[partition].entries = [Entry(max(1, ms)) for ms in times]
        topic.write_times([max(1, ms) for ms in times], partition)
    topic.write_transaction([65_000], partition=2)
    listed.append(2, 65_000)
    listed.append_marker(2, 2 * FUTURE_MS)

    def scan_times(partition: int, start: int, end: int) -> list[TimedOffset]:
        wanted = [OffsetRange(partition, start, end)]
        return [
            TimedOffset(record.offset, record.timestamp_ms)
            for records in fetch(Client.CONFLUENT, topic.settings, wanted)
            for record in records
        ]

    with closing(TopicOffsets(topic.settings)) as offsets:
        for limit, drain in product((7, 40, 1_000), (True, False)):
            limits = BatchLimits(rows=limit)
            kafka = Admission("", offsets, scan_times, lambda starts: 1, limits)
            target = listed.admission().target() if drain else None
            position = Position()
            while True:
                end = kafka.plan(position, WALL_MS, target)
                assert end == listed.admission(limit).plan(position, WALL_MS, target)
                if end == position:
                    break
                position = end
            assert ends(position) == [93, 148, 2, 3]


# --- properties

TIMES = st.integers(0, 40)
"""Few and close, so that equal times, late ones and bursts are common."""


@st.composite
def partition_times(draw: st.DrawFn, futures: bool = True) -> list[int]:
    """Times that mostly rise, with late and future ones and bursts."""
    times: list[int] = []
    now_ms = draw(TIMES) * 500
    for _ in range(draw(st.integers(0, 12))):
        now_ms += draw(st.sampled_from([0, 1, 7, 400, 2_500, 45_000]))
        match draw(st.integers(0, 9)):
            case 0:
                times.append(max(0, now_ms - draw(st.integers(1, 60_000))))
            case 1 if futures:
                times.append(FUTURE_MS + draw(st.integers(0, 100_000)))
            case 2:
                times += [now_ms] * draw(st.integers(2, 9))
            case _:
                times.append(now_ms)
    return times


LIMITS = st.lists(st.integers(1, 14), min_size=1, max_size=5)


@given(st.lists(partition_times(), min_size=1, max_size=4), LIMITS)
def test_drained_topic_is_read_whole(
    partitions: list[list[int]], limits: list[int]
) -> None:
    """In whatever batches, and T ends at the greatest time that counts."""
    topic = ListedTopic(*partitions)
    reader = Reader(topic)
    reader.read_all(limits, target=topic.admission().target())
    assert ends(reader.position) == [len(times) for times in partitions]
    assert reader.position.clock_ms == max(
        (ms for times in partitions for ms in times if ms < FUTURE_MS), default=0
    )


@given(st.lists(partition_times(), min_size=1, max_size=4), LIMITS, LIMITS)
def test_clock_at_each_record_does_not_depend_on_the_cut(
    partitions: list[list[int]], limits: list[int], others: list[int]
) -> None:
    """So the figures do not either."""
    readers = []
    for chosen in (limits, others, [10_000]):
        topic = ListedTopic(*partitions)
        readers.append(Reader(topic))
        readers[-1].read_all(chosen, target=topic.admission().target())
    assert readers[0].clocks == readers[1].clocks == readers[2].clocks


@given(
    st.lists(partition_times(), min_size=1, max_size=4),
    st.integers(0, 200_000),
    st.integers(0, 200_000),
    LIMITS,
    LIMITS,
)
def test_window_is_read_whole_and_alike_however_it_is_cut(
    partitions: list[list[int]],
    first_ms: int,
    length_ms: int,
    limits: list[int],
    others: list[int],
) -> None:
    """Each of its records, with the same clock, and T at the end of the window."""
    window = Window(first_ms, first_ms + length_ms)
    readers = [
        replayed(ListedTopic(*partitions), window, chosen)
        for chosen in (limits, others, [10_000])
    ]
    assert sorted(readers[0].clocks) == [
        (partition, offset)
        for partition, times in enumerate(partitions)
        for offset, ms in enumerate(times)
        if ms in window
    ]
    assert readers[0].clocks == readers[1].clocks == readers[2].clocks
    times = [ms for times in partitions for ms in times if ms < FUTURE_MS]
    newest_ms = max(times, default=0)
    clock_ms = min(max(newest_ms, window.first_ms), window.last_ms)
    assert {reader.position.clock_ms for reader in readers} == {clock_ms}


@given(st.lists(partition_times(futures=False), min_size=1, max_size=4), LIMITS)
def test_waiting_topic_is_read_whole(
    partitions: list[list[int]], limits: list[int]
) -> None:
    """Live, T is then the least of the newest times."""
    reader = Reader(ListedTopic(*partitions))
    reader.read_all(limits)
    assert ends(reader.position) == [len(times) for times in partitions]
    newest = [max(times) for times in partitions if any(times)]
    assert reader.position.clock_ms == min(newest, default=0)
    reader.read_all(limits, WALL_MS + 30_001)
    assert reader.position.clock_ms == max(newest, default=0)


@settings(max_examples=200)
@given(st.data())
def test_growing_topic_keeps_its_promises(data: st.DataObject) -> None:
    """Records, partitions and wall time come between the batches."""
    topic = ListedTopic([])
    reader = Reader(topic)
    wall_ms = WALL_MS
    for _ in range(data.draw(st.integers(1, 6))):
        partition = data.draw(st.integers(0, min(3, len(topic.logs))))
        topic.append(partition, *data.draw(partition_times()))
        # What was in the future may no longer be.
        wall_ms += data.draw(st.sampled_from([0, 1, 30_000, 110_000]))
        for _ in range(data.draw(st.integers(0, 3))):
            reader.read_batch(data.draw(st.integers(1, 14)), wall_ms)
    reader.read_all([data.draw(st.integers(1, 14))], wall_ms)
    assert ends(reader.position) == [len(log.entries) for log in topic.logs]


@given(
    st.lists(
        st.lists(st.tuples(partition_times(futures=False), st.integers(0, 400_000))),
        min_size=1,
        max_size=3,
    ),
    LIMITS,
)
def test_transactions_drive_the_clock_ten_seconds_at_most(
    partitions: list[list[tuple[list[int], int]]], limits: list[int]
) -> None:
    """Their ends lie among the records, at times of their own."""
    topic = ListedTopic(*[[]] * len(partitions))
    for partition, transactions in enumerate(partitions):
        for times, marker_ms in transactions:
            topic.append(partition, *times)
            topic.append_marker(partition, marker_ms)
    reader = Reader(topic)
    target = topic.admission().target()
    reader.read_all(limits, target=target, trusted_ms=10_000)
    assert ends(reader.position) == [len(log.entries) for log in topic.logs]


def test_admission_needs_no_more_than_the_protocol() -> None:
    """A topic of lists is as good as Kafka."""
    topic = ListedTopic([1_000])
    admission = Admission("frames", topic, topic.scan_times, topic.mean_bytes)
    assert admission.target() == Target({0: 1})
