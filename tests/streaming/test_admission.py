"""Plans of batches: what fits, lost records, windows, and Kafka itself."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from itertools import product

import pytest

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TimedOffset, TopicOffsets
from connectors.kafka.settings import Client, KafkaSettings, RecordsLost, TopicReplaced
from streaming.admission import LATE_MS, Admission, Target
from streaming.position import PartitionPosition, Position
from streaming.settings import BatchLimits, Window
from tests.support.batches import FUTURE_MS, WALL_MS, Reader, drained, ends, replayed
from tests.support.kafka import TopicMaker
from tests.support.topics import Entry, ListedTopic

# --- all fits


def test_batch_that_fits_is_read_to_the_end() -> None:
    """T is then the least of the partitions' newest times."""
    topic = ListedTopic([1_000, 2_000], [1_500])
    end = topic.admission().plan(Position(), WALL_MS)
    assert ends(end) == [2, 1]
    assert end.clock_ms == 1_500
    assert end.admitted_ms == WALL_MS
    assert [p.newest_ms for p in end.partitions.values()] == [2_000, 1_500]


def test_plan_without_anything_new_is_the_start() -> None:
    """Spark then makes no batch, whatever the wall time."""
    topic = ListedTopic([1_000, 2_000], [1_500], [])
    admission = topic.admission()
    end = admission.plan(Position(), WALL_MS)
    assert admission.plan(end, WALL_MS + 5_000) is not None
    assert admission.plan(end, WALL_MS + 5_000) == end


def test_empty_topic_places_its_partitions() -> None:
    """Nothing is read and the clock does not move."""
    reader = Reader(ListedTopic([], []))
    assert reader.read_batch(10)
    assert ends(reader.position) == [0, 0]
    assert (reader.position.clock_ms, reader.position.records) == (0, 0)
    assert not reader.read_batch(10, WALL_MS + 60_000)


def test_silent_partition_holds_the_clock_for_thirty_seconds() -> None:
    """By wall time, since its records may be on their way; then T moves without it."""
    topic = ListedTopic([100_000, 200_000], [100_500])
    reader = Reader(topic)
    reader.read_all([100])
    assert reader.position.clock_ms == 100_500
    topic.append(0, 210_000)
    reader.read_all([100], WALL_MS + 30_000)
    assert reader.position.clock_ms == 100_500
    reader.read_all([100], WALL_MS + 30_001)
    assert reader.position.clock_ms == 210_000


@pytest.mark.parametrize("limit", [100, 1])
@pytest.mark.parametrize("entry", [Entry(300_000), Entry(20_000, is_record=False)])
def test_partition_whose_records_do_not_count_holds_the_clock_for_thirty_seconds(
    entry: Entry, limit: int
) -> None:
    """For example, the only tap of one of several topics has a fast clock."""
    wall_ms = 1_700_000_000_000
    topic = ListedTopic([wall_ms], [wall_ms])
    reader = Reader(topic)
    reader.read_all([limit], wall_ms)
    for now_ms in range(wall_ms + 15_000, wall_ms + 75_000, 15_000):
        topic.append(0, now_ms)
        topic.logs[1].entries.append(entry._replace(time_ms=now_ms + entry.time_ms))
        reader.read_all([limit], now_ms)
        is_idle = now_ms - wall_ms > 30_000
        assert reader.position.clock_ms == (now_ms if is_idle else wall_ms)
    topic.append(1, now_ms + 1)
    topic.append(0, now_ms + 9_000)
    reader.read_all([limit], now_ms + 9_000)
    assert reader.position.clock_ms == now_ms + 1


def test_wall_clock_that_is_set_back_makes_no_partition_hold_the_clock() -> None:
    """A silent one counts as idle after its 30 s, not when wall time has caught up."""
    topic = ListedTopic([100_000, 110_000], [105_000])
    reader = Reader(topic)
    reader.read_all([100])
    back_ms = WALL_MS - 600_000
    topic.append(0, 120_000)
    reader.read_all([100], back_ms)
    assert reader.position.clock_ms == 105_000
    topic.append(0, 210_000)
    reader.read_all([100], back_ms + 30_001)
    assert reader.position.clock_ms == 210_000


def test_clock_does_not_wait_for_partitions_that_are_all_silent() -> None:
    """It moves to the greatest time."""
    reader = Reader(ListedTopic([1_000, 9_000], [2_000]))
    reader.read_all([100])
    reader.read_all([100], WALL_MS + 40_000)
    assert reader.position.clock_ms == 9_000


def test_partition_without_records_does_not_hold_the_clock() -> None:
    """It has no newest record that T must wait for."""
    reader = Reader(ListedTopic([1_000, 2_000], []))
    reader.read_all([100])
    assert reader.position.clock_ms == 2_000


def test_partition_emptied_by_retention_still_holds_the_clock() -> None:
    """Records that were read count, although the broker no longer has them."""
    topic = ListedTopic([100_000, 110_000], [105_000])
    reader = Reader(topic)
    reader.read_all([100])
    topic.logs[1].first = 1
    topic.append(0, 120_000)
    reader.read_all([100])
    assert reader.position.clock_ms == 105_000


def test_drained_topic_ends_at_its_greatest_time() -> None:
    """T does not depend on where the other partitions end."""
    reader = drained([1_000, 90_000], [1_500, 200_000, 150_000], [])
    assert reader.position.clock_ms == 200_000
    assert ends(reader.position) == [2, 3, 0]


# --- partitions added, records lost


def test_added_partition_is_read_from_its_first_record() -> None:
    """That is the first record that retention has not deleted."""
    topic = ListedTopic([1_000])
    reader = Reader(topic)
    reader.read_all([10])
    topic.append(1, 1_100, 1_200, 1_300)
    topic.logs[1].first = 1
    reader.read_all([10])
    assert reader.position.partitions[1] == PartitionPosition(3, 1_300, 1, WALL_MS)


def test_target_has_no_partition_added_after_it() -> None:
    """A partition added later is placed at its beginning and not read."""
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


def test_target_behind_the_start_gives_an_empty_plan() -> None:
    """This happens if a run is restarted after it read further."""
    topic = ListedTopic([1_000, 2_000, 3_000])
    reader = Reader(topic)
    reader.read_all([10])
    assert not reader.read_batch(10, target=Target({0: 1}))
    assert ends(reader.position) == [3]


def test_records_beyond_the_target_are_not_scanned_while_catching_up() -> None:
    """Only the last batch needs the exact greatest time."""
    topic = ListedTopic(range(0, 100_000, 100))
    target = topic.admission().target()
    topic.append(0, 200_000)
    reader = Reader(topic)
    reader.read_all([100], target=target)
    assert reader.position.clock_ms == 99_900
    assert topic.scanned <= 300


def lost(topic: ListedTopic, start: Position) -> RecordsLost:
    """The error raised by a plan whose records are gone."""
    with pytest.raises(RecordsLost) as caught:
        topic.admission().plan(start, WALL_MS)
    return caught.value


def test_records_gone_by_retention_are_an_error() -> None:
    """The error has the topic, the partition and the offsets."""
    topic = ListedTopic([1_000, 2_000], [1_000, 2_000, 3_000, 4_000])
    reader = Reader(topic)
    reader.read_batch(2)
    assert ends(reader.position) == [1, 1]
    topic.logs[1].first = 3
    error = lost(topic, reader.position)
    assert (error.topic, error.partition) == ("frames", 1)
    assert (error.first, error.end) == (1, 3)


def test_retention_of_records_that_were_read_is_no_loss() -> None:
    """Retention may delete all records that were read."""
    topic = ListedTopic([1_000, 2_000])
    reader = Reader(topic)
    reader.read_all([10])
    topic.logs[0].first = 2
    assert not reader.read_batch(10)
    topic.append(0, 3_000)
    reader.read_all([10])
    assert reader.position.clock_ms == 3_000


def test_skipped_records_are_counted() -> None:
    """The batch then begins at the first record that the topic still has."""
    topic = ListedTopic([1_000, 2_000, 3_000, 4_000], [1_000, 2_000])
    start = replace(topic.admission(2).plan(Position(), WALL_MS), skipped=5)
    topic.logs[0].first = 3
    end = topic.admission(skip_lost=True).plan(start, WALL_MS)
    assert end.skipped == 7
    assert end.partitions[0] == PartitionPosition(4, 4_000, 3, WALL_MS)
    assert end.partitions[1] == PartitionPosition(2, 2_000, 1, WALL_MS)


def test_topic_created_anew_is_an_error() -> None:
    """The offsets that were read belong to other records."""
    start = ListedTopic([1_000] * 5).admission().plan(Position(), WALL_MS)
    error = lost(ListedTopic([2_000, 3_000]), start)
    assert (error.partition, error.first, error.end) == (0, 2, 5)


def test_topic_created_anew_with_fewer_partitions_is_an_error() -> None:
    """Kafka removes partitions only with their topic."""
    start = ListedTopic([1_000], [1_000] * 4).admission().plan(Position(), WALL_MS)
    error = lost(ListedTopic([1_000]), start)
    assert (error.partition, error.first, error.end) == (1, 0, 4)


def test_topic_created_anew_is_read_from_its_beginning_with_skip_lost() -> None:
    """T continues from its previous value."""
    start = ListedTopic([5_000] * 5, [6_000]).admission().plan(Position(), WALL_MS)
    topic = ListedTopic([2_000, 7_000])
    end = topic.admission(skip_lost=True).plan(start, WALL_MS)
    assert end.partitions == {0: PartitionPosition(2, 7_000, 0, WALL_MS)}
    assert end.clock_ms == 7_000
    assert end.skipped == 0


def test_topic_made_anew_with_more_records_is_an_error() -> None:
    """Offsets alone do not show it; Kafka's id does."""
    start = ListedTopic([1_000] * 2, topic_id="old").admission().plan(Position(), 1)
    assert start.topic_id == "old"
    topic = ListedTopic([2_000] * 5, topic_id="new")
    with pytest.raises(TopicReplaced, match=r"recreated.*--on-lost-records skip") as it:
        topic.admission().plan(start, WALL_MS)
    assert (it.value.topic, it.value.known, it.value.found) == ("frames", "old", "new")


def test_topic_made_anew_with_more_records_is_read_from_its_start_with_skip_lost() -> (
    None
):
    """Lost are records that were known and unread, and those that Kafka deleted."""
    old = ListedTopic([5_000] * 7, [6_000] * 9, topic_id="old")
    start = replace(old.admission(10).plan(Position(), WALL_MS), skipped=1)
    unread = 16 - sum(ends(start))
    assert unread > 0
    topic = ListedTopic([2_000] * 20, [7_000] * 30, [8_000], topic_id="new")
    topic.logs[1].first = 3
    end = topic.admission(skip_lost=True).plan(start, WALL_MS)
    assert [here.batch_start for here in end.partitions.values()] == [0, 3, 0]
    assert ends(end) == [20, 30, 1]
    assert end.records == start.records + 20 + 27 + 1
    assert end.skipped == 1 + unread + 3
    assert end.topic_id == "new"
    assert end.clock_ms >= start.clock_ms


def test_batch_of_a_topic_that_was_made_anew_is_not_read() -> None:
    """It was planned for records that are gone."""
    planned = ListedTopic([1_000], topic_id="old").admission().plan(Position(), WALL_MS)
    topic = ListedTopic([1_000], topic_id="new")
    assert set(topic.admission(skip_lost=True).lost_topics(planned)) == {0}
    with pytest.raises(TopicReplaced):
        topic.admission().lost_topics(planned)
    same = ListedTopic([1_000], topic_id="old").admission()
    assert not same.lost_topics(planned)


def test_target_has_no_records_of_a_topic_made_after_it() -> None:
    """The new topic is placed at its start and not read."""
    target = ListedTopic([1_000] * 5, topic_id="old").admission().target()
    reader = Reader(ListedTopic([2_000] * 9, topic_id="new"))
    reader.read_all([10], target=target)
    assert ends(reader.position) == [0]
    assert reader.position.topic_id == "new"


@pytest.mark.parametrize(("known", "found"), [(None, "new"), ("old", None)])
def test_topic_whose_id_is_unknown_is_accepted(
    known: str | None, found: str | None
) -> None:
    """Earlier releases stored no id, and brokers before 2.8 give none."""
    start = ListedTopic([1_000], topic_id=known).admission().plan(Position(), WALL_MS)
    topic = ListedTopic([1_000, 2_000], topic_id=found)
    end = topic.admission().plan(start, WALL_MS)
    assert ends(end) == [2]
    assert end.topic_id == (known or found)


# --- a window of record times


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_clock_ends_with_the_window_that_the_topic_passes(limit: int) -> None:
    """Deadlines up to its end then have fired, although no record lies there."""
    topic = ListedTopic(range(10_000, 90_000, 1_000), [12_500, 50_000])
    reader = replayed(topic, Window(20_000, 40_500), [limit])
    assert sorted(reader.clocks) == [(0, offset) for offset in range(10, 31)]
    assert reader.position.clock_ms == 40_500


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_clock_ends_with_the_topic_that_does_not_pass_the_window(limit: int) -> None:
    """The clock ends as it does without a window."""
    topic = ListedTopic(range(10_000, 90_000, 1_000), [12_500, 50_000])
    reader = replayed(topic, Window(20_000, 200_000), [limit])
    assert sorted(reader.clocks) == [(0, n) for n in range(10, 80)] + [(1, 1)]
    assert reader.position.clock_ms == 89_000


def test_records_of_a_window_are_searched_for_an_hour_behind_it() -> None:
    """Finds late records, and records behind one with a wrong clock."""
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
    """It has the wall time of its commit, and older records may lie behind it."""
    topic = ListedTopic([10_000])
    topic.append_marker(0, 20_000 + LATE_MS + 1)
    topic.append(0, 12_000)
    reader = replayed(topic, Window(10_000, 20_000), [10])
    assert sorted(reader.clocks) == [(0, 0), (0, 2)]


@pytest.mark.parametrize("place", [0, 5, 12], ids=["before", "in", "after"])
def test_record_from_the_future_ends_no_window(place: int) -> None:
    """A tap's clock is fast by more than the time that is searched behind a window."""
    times = [*range(10_000, 110_000, 5_000)]
    lie_ms = 60_000 + LATE_MS + 100_000
    topic = ListedTopic([*times[:place], lie_ms, *times[place:]])
    window = Window(30_000, 60_000)
    reader = replayed(topic, window, [10])
    assert len(reader.clocks) == 7
    assert reader.position.clock_ms == window.last_ms


def test_records_behind_a_window_are_not_scanned() -> None:
    """It is enough that the newest record lies beyond the target."""
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
    # One read: whether the newest entry is a record.
    assert topic.scanned == 1


# --- Kafka itself


@pytest.mark.kafka
def test_kafka_gives_the_same_plans(kafka_topic: TopicMaker) -> None:
    """The listed topic that stands for Kafka in other tests gives equal plans."""
    partitions = [
        [*range(0, 90_000, 1_000), FUTURE_MS, 50_000, 95_000],
        [*[20_000] * 30, *range(21_000, 80_000, 500)],
        [],
        [5_000, 70_000, 60_000],
    ]
    listed, topic = ListedTopic(*partitions), kafka_topic(4)
    for partition, times in enumerate(partitions):
        # confluent-kafka treats a time of 0 as no time.
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
            kafka = Admission(
                KafkaSettings(""), offsets, scan_times, lambda starts: 1, limits
            )
            target = listed.admission().target() if drain else None
            position = Position()
            while True:
                end = kafka.plan(position, WALL_MS, target)
                # The listed topic has no id.
                same = listed.admission(limit).plan(position, WALL_MS, target)
                assert replace(end, topic_id=None) == replace(same, topic_id=None)
                if end == position:
                    break
                position = end
            assert ends(position) == [93, 148, 2, 3]


def test_admission_needs_no_more_than_the_protocol() -> None:
    """Any object with the methods of `Offsets` will do."""
    topic = ListedTopic([1_000])
    admission = Admission(
        KafkaSettings("", "frames"), topic, topic.scan_times, topic.mean_bytes
    )
    assert admission.target() == Target({0: 1})
