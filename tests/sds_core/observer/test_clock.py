"""This machine's clock, compared with others."""

from __future__ import annotations

import pytest

from sds_core.observer.clock import ClockFigures, ClockLevel, RecordLead

NOW_MS = 1_786_276_990_000
Newest = dict[int, tuple[int, int]]


def observed(
    leads_ms: dict[int, list[int]], lead: RecordLead | None = None
) -> int | None:
    """What is known after new records, one a second, in each partition.

    Args:
        leads_ms: Partition -> by how much each of its records is ahead.
        lead: Observes them; None for a new one.
    """
    lead = lead or RecordLead()
    found = lead.observe(dict.fromkeys(leads_ms, (0, NOW_MS)), NOW_MS)
    for turn in range(max(map(len, leads_ms.values()))):
        now_ms = NOW_MS + 1_000 * (turn + 1)
        newest: Newest = {
            partition: (turn + 1, now_ms + ahead_ms[turn])
            for partition, ahead_ms in leads_ms.items()
            if turn < len(ahead_ms)
        }
        found = lead.observe(newest, now_ms)
    return found


def test_records_ahead_of_the_clock_in_all_partitions_are_noticed() -> None:
    """The least of them counts: the clock is behind by at least so much."""
    assert observed({0: [40_000, 41_000, 39_500], 1: [44_000] * 3}) == 39_500


@pytest.mark.parametrize(
    "leads_ms",
    [
        {0: [40_000, 40_000]},
        {0: [40_000] * 3, 1: [40_000]},
    ],
)
def test_few_new_records_show_nothing(leads_ms: dict[int, list[int]]) -> None:
    """One may have any time."""
    assert observed(leads_ms) is None


def test_one_record_with_a_wrong_time_shows_nothing() -> None:
    """It stays the newest of its partition, so that partition does not count."""
    lead = RecordLead()
    assert observed({0: [3_600_000, 3_600_000, -100], 1: [-100] * 3}, lead) == -100
    assert observed({0: [3_600_000], 1: [-100] * 40}) == -100
    assert observed({0: [3_600_000] * 3, 1: [-200] * 3}) == -200


def test_quiet_partition_does_not_count() -> None:
    """Only that of the last half minute is known."""
    assert observed({0: [40_000] * 3, 1: [35_000] * 40}) == 35_000
    assert observed({0: [-100] * 3, 1: [35_000] * 20}) == -100


def test_topic_without_new_records_shows_nothing() -> None:
    """Neither at first nor after half a minute."""
    lead = RecordLead()
    assert lead.observe({}, NOW_MS) is None
    assert observed({0: [40_000] * 3}, lead) == 40_000
    assert lead.observe({0: (3, NOW_MS + 43_000)}, NOW_MS + 40_000) is None


@pytest.mark.parametrize(
    ("behind_ms", "ahead_ms", "level"),
    [
        (None, None, ClockLevel.AGREES),
        (5_000, None, ClockLevel.AGREES),
        (5_001, None, ClockLevel.NOTABLE),
        (-5_001, None, ClockLevel.NOTABLE),
        (30_000, None, ClockLevel.NOTABLE),
        (30_001, None, ClockLevel.WRONG),
        (-120_000, None, ClockLevel.WRONG),
        (None, 30_001, ClockLevel.WRONG),
        (None, 5_001, ClockLevel.NOTABLE),
        # Records may be late.
        (None, -120_000, ClockLevel.AGREES),
        # If Kafka's clock agrees, that of the taps is wrong.
        (100, 120_000, ClockLevel.AGREES),
    ],
)
def test_difference_of_clocks_has_a_level(
    behind_ms: int | None, ahead_ms: int | None, level: ClockLevel
) -> None:
    """More than 5 s is notable, more than 30 s wrong; Kafka's clock comes first."""
    assert ClockFigures(behind_ms, ahead_ms).level() is level


def test_difference_near_a_limit_does_not_change_the_level_each_time() -> None:
    """It falls below a limit only by a fifth of it."""
    level = ClockLevel.AGREES
    levels = []
    for behind_ms in (4_900, 5_100, 4_900, 29_000, 31_000, 25_000, 23_000, 3_900):
        level = ClockFigures(behind_ms).level(level)
        levels.append(level)
    agrees, notable, wrong = ClockLevel
    assert levels == [
        agrees, notable, notable, notable, wrong, wrong, notable, agrees,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        (ClockFigures(120_040), "this machine's clock is 120.0 s behind Kafka's"),
        (ClockFigures(-7_260), "this machine's clock is 7.3 s ahead of Kafka's"),
        (
            ClockFigures(None, 61_000),
            "new records are stamped 61.0 s ahead of this machine's clock: "
            "it is slow, or the clock of a tap is fast",
        ),
    ],
)
def test_sentence_says_which_clocks_differ(
    figures: ClockFigures, sentence: str
) -> None:
    """And by how much; of records it cannot say whose clock is wrong."""
    assert figures.sentence == sentence
