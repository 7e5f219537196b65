"""Plans of batches over random topics: properties of whole runs."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.admission import Window
from tests.support.batches import (
    FUTURE_MS,
    WALL_MS,
    Reader,
    clocks_and_lies,
    ends,
    partition_times,
    replayed,
)
from tests.support.properties import CAREFUL
from tests.support.topics import ListedTopic

pytestmark = pytest.mark.slow

LIMITS = st.lists(st.integers(1, 14), min_size=1, max_size=5)


@CAREFUL
@given(st.lists(partition_times(), min_size=1, max_size=4), LIMITS)
def test_drained_topic_is_read_whole(
    partitions: list[list[int]], limits: list[int]
) -> None:
    """With any limits, and T ends at the greatest time that is not in the future."""
    topic = ListedTopic(*partitions)
    reader = Reader(topic)
    reader.read_all(limits, target=topic.admission().target())
    assert ends(reader.position) == [len(times) for times in partitions]
    assert reader.position.clock_ms == max(
        (ms for times in partitions for ms in times if ms < FUTURE_MS), default=0
    )


@CAREFUL
@given(st.lists(partition_times(), min_size=1, max_size=4), LIMITS, LIMITS)
def test_clock_at_each_record_does_not_depend_on_the_cut(
    partitions: list[list[int]], limits: list[int], others: list[int]
) -> None:
    """So figures do not depend on it either."""
    readers = []
    for chosen in (limits, others, [10_000]):
        topic = ListedTopic(*partitions)
        readers.append(Reader(topic))
        readers[-1].read_all(chosen, target=topic.admission().target())
    assert readers[0].clocks == readers[1].clocks == readers[2].clocks


@CAREFUL
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
    """Each record once, with the same clock, and T at the end of the window."""
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


@CAREFUL
@given(st.lists(partition_times(futures=False), min_size=1, max_size=4), LIMITS)
def test_live_topic_is_read_whole(
    partitions: list[list[int]], limits: list[int]
) -> None:
    """T is then the least of the newest times.

    A record from the future hides the newest time of its partition, which then does not
    hold T back: otherwise whoever writes such records could stop T.
    """
    reader = Reader(ListedTopic(*partitions))
    reader.read_all(limits)
    assert ends(reader.position) == [len(times) for times in partitions]
    newest = [max(times) for times in partitions if any(times)]
    assert reader.position.clock_ms == min(newest, default=0)
    reader.read_all(limits, WALL_MS + 30_001)
    assert reader.position.clock_ms == max(newest, default=0)


@CAREFUL
@given(st.data())
def test_growing_topic_is_read_whole(data: st.DataObject) -> None:
    """Records and partitions are added and wall time passes between batches."""
    topic = ListedTopic([])
    reader = Reader(topic)
    wall_ms = WALL_MS
    for _ in range(data.draw(st.integers(1, 6))):
        partition = data.draw(st.integers(0, min(3, len(topic.logs))))
        topic.append(partition, *data.draw(partition_times()))
        # A future record may become a present one.
        wall_ms += data.draw(st.sampled_from([0, 1, 30_000, 110_000]))
        for _ in range(data.draw(st.integers(0, 3))):
            reader.read_batch(data.draw(st.integers(1, 14)), wall_ms)
    reader.read_all([data.draw(st.integers(1, 14))], wall_ms)
    assert ends(reader.position) == [len(log.entries) for log in topic.logs]


@CAREFUL
@given(
    st.lists(
        st.lists(st.tuples(partition_times(), st.integers(0, 400_000))),
        min_size=1,
        max_size=3,
    ),
    LIMITS,
)
def test_transactions_drive_the_clock_ten_seconds_at_most(
    partitions: list[list[tuple[list[int], int]]], limits: list[int]
) -> None:
    """Their ends lie among the records, at any time."""
    topic = ListedTopic(*[[]] * len(partitions))
    for partition, transactions in enumerate(partitions):
        for times, marker_ms in transactions:
            topic.append(partition, *times)
            topic.append_marker(partition, marker_ms)
    reader = Reader(topic)
    target = topic.admission().target()
    reader.read_all(limits, target=target, trusted_ms=10_000)
    assert ends(reader.position) == [len(log.entries) for log in topic.logs]


@CAREFUL
@given(st.lists(clocks_and_lies(), min_size=1, max_size=3), LIMITS, LIMITS)
def test_record_from_the_future_is_one_however_late_it_is_read(
    partitions: list[list[tuple[int, bool]]], limits: list[int], others: list[int]
) -> None:
    """Read at once, by wall time; later, by the records behind it."""
    now_ms = max((ms for ms, is_lie in chain(*partitions) if not is_lie), default=0)
    readers = []
    for chosen, late_ms in ((limits, 0), (others, 100_000), ([10_000], 10_000_000)):
        topic = ListedTopic(*([ms for ms, _ in times] for times in partitions))
        reader = Reader(topic)
        target = topic.admission().target()
        reader.read_all(chosen, now_ms + late_ms, target)
        readers.append(reader)
    assert readers[0].clocks == readers[1].clocks == readers[2].clocks
    for reader in readers:
        assert reader.position.clock_ms == now_ms
        assert reader.futures == {
            (partition, offset)
            for partition, times in enumerate(partitions)
            for offset, (_, is_lie) in enumerate(times)
            if is_lie
        }
