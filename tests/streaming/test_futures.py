"""Which records are from the future, live and after a pause of the monitor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from connectors.kafka.producer import TopicRecord, partitions_of
from connectors.recording import load_recording
from sds_core.observer.record import MAX_AHEAD_MS
from tests.support.batches import Reader
from tests.support.frames import FrameFactory, value_of
from tests.support.monitor import Monitor
from tests.support.topics import ListedTopic

NOW_MS = 1_700_000_000_000
SECOND_MS = 1_000
HOUR_MS = 3_600_000


def steady(first_ms: int, count: int, step_ms: int = SECOND_MS) -> list[int]:
    """Times of records that are written at equal intervals."""
    return [first_ms + number * step_ms for number in range(count)]


def futures(
    *partitions: Sequence[int], wall_ms: int = NOW_MS + 10 * HOUR_MS, limit: int = 1_000
) -> set[tuple[int, int]]:
    """Partition and offset of records from the future of a topic that is drained."""
    topic = ListedTopic(*partitions)
    reader = Reader(topic)
    reader.read_all([limit], wall_ms, topic.admission().target())
    return reader.futures


def live(times: Sequence[tuple[int, int]]) -> Reader:
    """A reader that looks every second, while records are written.

    Args:
        times: When each record is written, ascending, and its time, Unix ms.
    """
    topic = ListedTopic([])
    reader = Reader(topic)
    written = list(times)
    wall_ms = written[0][0]
    while written:
        while written and written[0][0] <= wall_ms:
            topic.append(0, written.pop(0)[1])
        while reader.read_batch(1_000, wall_ms):
            pass
        wall_ms += SECOND_MS
    return reader


def test_record_ahead_of_those_behind_it_is_from_the_future() -> None:
    """However late it is read: the next records show when it was written."""
    times = [*steady(NOW_MS, 50), NOW_MS + 150_000, *steady(NOW_MS + 50_000, 200)]
    assert futures(times) == {(0, 50)}
    assert futures(times, wall_ms=NOW_MS + 250_000, limit=7) == {(0, 50)}


def test_topic_that_resumes_has_no_record_from_the_future() -> None:
    """All its records are ahead of those before the silence."""
    times = steady(NOW_MS, 20) + steady(NOW_MS + 5 * HOUR_MS, 20)
    assert futures(times) == set()


def test_first_record_may_be_from_the_future() -> None:
    """No record lies before it."""
    assert futures([NOW_MS + HOUR_MS, *steady(NOW_MS, 10)]) == {(0, 0)}
    assert futures([NOW_MS]) == set()


def test_last_records_are_judged_by_wall_time() -> None:
    """Nothing behind them shows when they were written: docs/guarantees.md."""
    times = [*steady(NOW_MS, 10), NOW_MS + 100_000]
    assert futures(times, wall_ms=NOW_MS + 10_000) == {(0, 10)}
    assert futures(times, wall_ms=NOW_MS + 100_000) == set()


def test_two_late_records_refute_nothing() -> None:
    """A tap that is late meets one that resumes."""
    late = [NOW_MS + HOUR_MS - 200_000] * 2
    times = [*steady(NOW_MS, 5), NOW_MS + HOUR_MS, *late, *steady(NOW_MS + HOUR_MS, 9)]
    assert futures(times) == set()


def test_records_late_by_any_clock_refute_nothing() -> None:
    """Such as recordings and dead letters that are written again."""
    old = steady(NOW_MS - HOUR_MS, 40)
    times = [*steady(NOW_MS, 60), NOW_MS + HOUR_MS, *old, NOW_MS + HOUR_MS]
    assert futures(times) == set()


def test_flood_of_a_late_tap_refutes_no_tap_that_keeps_time() -> None:
    """Its records are not ahead of the clock that it has moved before."""
    times = steady(NOW_MS, 60)
    for at_ms in steady(NOW_MS + 60_000, 30):
        times += [at_ms, *[at_ms - 600_000] * 20]
    assert futures(times) == set()


@pytest.mark.parametrize("offset_ms", [-90_000, 90_000])
def test_taps_of_equal_number_refute_each_other_never(offset_ms: int) -> None:
    """Which of two clocks is wrong, the records do not tell."""
    times = [ms for at_ms in steady(NOW_MS, 100) for ms in (at_ms, at_ms + offset_ms)]
    assert futures(times) == set()


def test_single_tap_with_a_fast_clock_is_refuted_by_four_others() -> None:
    """Read live, all its records are from the future too."""
    times = [
        at_ms + lead_ms
        for at_ms in steady(NOW_MS, 100)
        for lead_ms in (0, 1, 100_000, 2, 3)
    ]
    fast = {(0, offset) for offset in range(2, 500, 5)}
    # Of the last ones, too few records behind them show it.
    assert fast - futures(times) <= {(0, 497)}


def test_record_that_was_written_in_time_is_never_refuted_live() -> None:
    """The monitor has seen that it was not there a second before."""
    resumed_ms = NOW_MS + HOUR_MS
    flood = [(resumed_ms, resumed_ms - HOUR_MS // 2)] * 40
    reader = live(
        [
            *((ms, ms) for ms in steady(NOW_MS, 20)),
            (resumed_ms, resumed_ms),
            *flood,
            *((ms, ms) for ms in steady(resumed_ms + SECOND_MS, 20)),
        ]
    )
    assert reader.futures == set()
    assert reader.position.clock_ms == resumed_ms + 20 * SECOND_MS


def test_record_from_the_future_is_one_live_and_later() -> None:
    """Its stamp is the same, and so are those of the records behind it."""
    times = [
        *((ms, ms) for ms in steady(NOW_MS, 20)),
        (NOW_MS + 20_000, NOW_MS + 120_000),
        *((ms, ms) for ms in steady(NOW_MS + 20_000, 200)),
    ]
    assert live(times).futures == {(0, 20)}
    assert futures([stamp_ms for _, stamp_ms in times]) == {(0, 20)}


def test_writers_flood_from_the_future_is_bounded_by_wall_time() -> None:
    """As many as all others together are believed, but never beyond a minute."""
    flood = [NOW_MS + 100_000] * 60 + [NOW_MS + 200_000] * 60
    topic = ListedTopic([*steady(NOW_MS, 10), *flood, *steady(NOW_MS + 10_000, 5)])
    reader = Reader(topic)
    reader.read_all([1_000], NOW_MS + 60_000, topic.admission().target())
    assert reader.position.clock_ms == NOW_MS + 100_000
    assert len(reader.futures) == 60


# --- figures


def reported(
    records: Sequence[TopicRecord], wall_ms: int, limit: int
) -> dict[str, Any]:
    """The report of a topic that is drained at some wall time."""
    partitions: list[list[TopicRecord]] = [[] for _ in range(partitions_of(records))]
    for record in records:
        partitions[record.partition].append(record)
    topic = ListedTopic(*([one.timestamp_ms for one in part] for part in partitions))
    target = topic.admission().target()
    reader, monitor = Reader(topic), Monitor(wall_ms=wall_ms)
    while reader.read_batch(limit, wall_ms, target):
        batch, written_ms = [], []
        for number, here in reader.position.partitions.items():
            for offset in range(here.batch_start, here.next_offset):
                record = partitions[number][offset]
                is_late = (number, offset) in reader.futures
                batch.append(record)
                written_ms.append(
                    record.timestamp_ms - MAX_AHEAD_MS - 1 if is_late else wall_ms
                )
        monitor.read(batch, reader.position.clock_ms, written_ms)
    return monitor.report()


@pytest.mark.parametrize("every", [7, 30])
@pytest.mark.parametrize("ahead_ms", [100_000, HOUR_MS])
def test_figures_do_not_depend_on_how_late_the_topic_is_read(
    every: int, ahead_ms: int
) -> None:
    """Nor do those of other channels on records from the future among theirs."""
    honest = load_recording()
    liar = FrameFactory("liar")
    records = []
    last_ms = max(record.timestamp_ms for record in honest)
    counts: Counter[int] = Counter()
    for number, record in enumerate(honest):
        records.append(record)
        counts[record.partition] += 1
        # Behind the last ones, nothing tells when they were written.
        if counts[record.partition] % every == 0 and (
            record.timestamp_ms < last_ms - 60_000
        ):
            lie = value_of(liar.content(f"lie-{number}", "eve", number + 1))
            lie_ms = record.timestamp_ms + ahead_ms
            records.append(TopicRecord(record.partition, lie_ms, b"liar", lie, ()))
    reports = [
        reported(records, last_ms + late_ms, limit)
        for late_ms, limit in ((0, 10_000), (100_000, 150), (10 * HOUR_MS, 999))
    ]
    assert reports[0] == reports[1] == reports[2]
    lies = len(records) - len(honest)
    assert lies > 40
    undecodable = reports[0]["totals"].pop("undecodable")
    assert undecodable == {"future_timestamp": lies}
    expected = reported(honest, last_ms, 10_000)
    assert reports[0]["channels"] == expected["channels"]
    assert reports[0]["totals"] | {"undecodable": {}} == expected["totals"]


def test_topic_whose_taps_are_all_fast_is_read() -> None:
    """Nothing in it tells another time: it has a clock of its own."""
    written = steady(NOW_MS, 100)
    for ahead_ms, refused in ((90_000, 0), (119_000, 0), (121_000, 100)):
        reader = live([(ms, ms + ahead_ms) for ms in written])
        assert len(reader.futures) == refused


def test_fast_taps_may_be_silent_for_a_while() -> None:
    """The lead is that at the last record, not the one of now."""
    written = [*steady(NOW_MS, 10), *steady(NOW_MS + 1_000_000, 10)]
    assert live([(ms, ms + 90_000) for ms in written]).futures == set()


def test_fast_tap_beside_a_right_one_is_refused() -> None:
    """It does not move the clock of the topic."""
    written = steady(NOW_MS, 100)
    times = [(ms, ms + 90_000 * (number % 2)) for number, ms in enumerate(written)]
    assert len(live(times).futures) == 50


def test_single_record_moves_the_clock_of_no_topic_that_has_one() -> None:
    """A stranger cannot give it a lead of more than a minute at once."""
    written = [(ms, ms) for ms in steady(NOW_MS, 20)]
    written += [(NOW_MS + 20_500, NOW_MS + 20_500 + 100_000)]
    written += [(ms, ms) for ms in steady(NOW_MS + 21_000, 20)]
    assert live(written).futures == {(0, 20)}
