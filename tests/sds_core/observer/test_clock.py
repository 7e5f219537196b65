"""This machine's clock, compared with other clocks."""

from __future__ import annotations

import pytest

from sds_core.observer.clock import ClockFigures, ClockLevel, NewRecord, TapClocks

NOW_MS = 1_786_276_990_000
AGREES = ClockLevel.AGREES


def seen(
    leads_ms: dict[str, list[int]], clocks: TapClocks | None = None, since_s: float = 0
) -> TapClocks:
    """Clocks after new records, one of each tap every 5 s.

    Args:
        leads_ms: Tap -> by how much each of its records is ahead when it arrives.
        clocks: Observes them; None for new ones.
        since_s: When the first one comes, monotonic seconds.
    """
    clocks = clocks or TapClocks()
    for turn in range(max(map(len, leads_ms.values()))):
        records = [
            NewRecord(tap, NOW_MS + some[turn], NOW_MS)
            for tap, some in leads_ms.items()
            if turn < len(some)
        ]
        clocks.observe(records, since_s + 5 * turn)
    return clocks


def test_clock_of_each_tap_is_measured() -> None:
    """A slow one has a negative offset, and the others do not change it."""
    found = seen({"slow": [-90_100] * 9, "fast": [89_900] * 9, "good": [-100] * 9})
    assert found.figures(0).taps == {"fast": 89_900, "good": -100, "slow": -90_100}
    assert found.figures(0).skewed_taps == {"fast": 89_900, "slow": -90_100}


def test_delays_are_not_taken_for_a_slow_clock() -> None:
    """Of a minute the records with the shortest way count."""
    delayed = [-40_000, -200, -35_000, -150, -50_000, -180, -45_000]
    assert seen({"tap": delayed}).figures(0).taps == {"tap": -200}
    # A tap that writes what it had kept, after which it is up to date again.
    kept = [-300_000, -200_000, -100_000, -300, -200, -100]
    assert seen({"tap": kept}).figures(0).taps == {"tap": -300}


def test_two_records_with_a_wrong_time_show_nothing() -> None:
    """They may have any."""
    assert seen({"tap": [3_600_000] * 2}).figures(0).taps == {}
    odd = [3_600_000, -100, 3_600_000, -120, -130]
    assert seen({"tap": odd}).figures(0).taps == {"tap": -100}


def test_clock_that_jumps_is_noticed_within_a_minute() -> None:
    """Forward with the third record, backward when the window has none from before."""
    forward = seen({"tap": [-100] * 12 + [90_000] * 3})
    assert forward.figures(0).taps == {"tap": 90_000}
    assert seen({"tap": [-100] * 12 + [-90_000] * 10}).figures(0).taps == {"tap": -100}
    backward = seen({"tap": [-100] * 12 + [-90_000] * 11})
    assert backward.figures(0).taps == {"tap": -90_000}


def test_tap_without_new_records_has_no_offset() -> None:
    """After a minute: its clock may have been set meanwhile."""
    clocks = seen({"tap": [-90_000] * 3})
    clocks.observe([], 71)
    assert clocks.figures(0).taps == {}


def test_offset_is_that_from_kafkas_clock() -> None:
    """If this machine's clock is wrong, those of the taps are not."""
    clocks = seen({"tap": [119_900] * 3, "slow": [29_900] * 3, "": [119_950] * 3})
    figures = clocks.figures(120_000)
    assert figures.taps == {"slow": -90_100, "tap": -100}
    # Records without a tap count here, as their writer has a clock too.
    assert figures.records_ahead_ms == 119_900
    assert clocks.figures(None).taps == {"slow": 29_900, "tap": 119_900}


def test_median_of_the_taps_is_compared_with_this_clock() -> None:
    """One tap with a wrong clock does not make this one wrong; the lower one of two."""
    assert seen({"a": [40_000] * 3, "b": [-100] * 3}).figures(None).level() is AGREES
    three = {"a": [40_000] * 3, "b": [41_000] * 3, "c": [-9_000_000] * 3}
    assert seen(three).figures(None).records_ahead_ms == 40_000
    assert seen({"a": [40_000] * 2}).figures(None).records_ahead_ms is None


def test_invented_taps_do_not_fill_the_memory() -> None:
    """Those seen first are followed, and others when these are silent."""
    assert seen({"t" * 1_001: [0] * 3, "t" * 1_000: [0] * 3}).figures(0).taps == {
        "t" * 1_000: 0
    }
    clocks = TapClocks()
    for turn in range(3):
        names = [f"tap {number:04}" for number in range(2_000)]
        clocks.observe((NewRecord(one, NOW_MS, NOW_MS) for one in names), turn)
    assert len(clocks.figures(0).taps) == 1_000
    seen({"late": [0] * 3}, clocks, since_s=100)
    assert seen({"late": [0] * 3}, clocks, since_s=110).figures(0).taps == {"late": 0}


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
