"""The soak: a leak is found, noise and a warm-up are not, and what its traffic is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from random import Random

import pytest

from benchmarks.soak.traffic import STRIDE_S, merged, traffic
from benchmarks.soak.trends import (
    GROWS,
    LEVEL,
    MEASURES,
    REMEMBERED_S,
    Measure,
    Soak,
    trend,
)
from connectors.kafka.producer import TopicRecord
from docs import make_soak

MEASURE = Measure("heap", limit=0.01)
USUAL = 100e6
TIMES_S = [20.0 * number for number in range(1, 181)]
"""An hour."""


def noisy(value: Callable[[float], float]) -> list[float]:
    """Values with a noise of one percent."""
    random = Random(1)
    return [value(at_s) + random.gauss(0, 0.01 * USUAL) for at_s in TIMES_S]


def run_of(values: list[float], warm_up_s: float) -> Soak:
    """A run of which the first measure has some values, and all others are level."""
    run = Soak("0", "2026-11-26", "machine", 1, warm_up_s)
    for at_s, value in zip(TIMES_S, values, strict=True):
        level = dict.fromkeys([one.key for one in MEASURES], 1.0)
        run.add(at_s, {**level, MEASURES[0].key: value})
    return run


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_leak_is_found(share: float) -> None:
    """Of five percent in an hour under a noise of one percent."""
    found = trend(TIMES_S, noisy(lambda at_s: USUAL * (1 + share * at_s / 3_600)))
    assert found.verdict(MEASURE, 0) == GROWS
    assert found.low < USUAL * share < found.high


def test_level_noise_is_not_a_leak() -> None:
    """Its interval contains 0."""
    found = trend(TIMES_S, noisy(lambda _: USUAL))
    assert found.low < 0 < found.high
    assert found.verdict(MEASURE, 0) != GROWS


def test_samples_that_depend_on_each_other_are_not_a_leak() -> None:
    """Each sample has nine tenths of the deviation of the sample before."""
    random = Random(1)

    def correlated() -> Iterator[float]:
        deviation = 0.0
        for _ in TIMES_S:
            deviation = 0.9 * deviation + random.gauss(0, 0.05 * USUAL)
            yield USUAL + deviation

    runs = [run_of([*correlated()], 0) for _ in range(100)]
    assert sum(bool(run.problems()) for run in runs) <= 3


def test_constant_is_level() -> None:
    """And so is what falls."""
    assert trend(TIMES_S, [5.0] * len(TIMES_S)).verdict(MEASURE, 0) == LEVEL
    assert trend(TIMES_S, [-at_s for at_s in TIMES_S]).verdict(MEASURE, 0) == LEVEL


def test_what_follows_the_state_needs_a_long_warm_up() -> None:
    """The state grows for an hour, because views remember messages as long."""
    measure = MEASURE._replace(follows_state=True)
    found = trend(TIMES_S, TIMES_S)
    assert found.verdict(measure, REMEMBERED_S - 1) == "filling"
    assert found.verdict(measure, REMEMBERED_S) == GROWS


def test_few_noisy_samples_decide_nothing() -> None:
    """A run that is too short does not say that a measure is level."""
    found = trend(TIMES_S[:10], noisy(lambda _: USUAL)[:10])
    assert found.verdict(MEASURE, 0) == "open"
    with pytest.raises(ValueError, match="9 samples after the warm-up: 10 are needed"):
        trend(TIMES_S[:9], [1.0] * 9)


def test_rise_within_the_warm_up_does_not_count() -> None:
    """What rises for forty minutes and then stays is found only without a warm-up."""
    values = noisy(lambda at_s: USUAL * (0.5 + 0.5 * min(1.0, at_s / 2_400)))
    assert not run_of(values, 2_500).problems()
    assert [one.split()[:2] for one in run_of(values, 0).problems()] == [
        [MEASURES[0].key, "grows"]
    ]


def test_growth_by_design_is_no_finding() -> None:
    """It has its reason instead of a limit."""
    measure = MEASURE._replace(reason="history")
    assert trend(TIMES_S, [*TIMES_S]).verdict(measure, 0) == "by design"


def test_page_has_a_row_for_each_measure_and_a_chart_for_one_that_changes() -> None:
    """A chart has at most sixty points."""
    run = run_of(noisy(lambda _: USUAL), 0)
    part = make_soak.block(run)
    assert "| temporary files | 1 | +0 | +0 to +0 | +1.01 | level |" in part
    assert sum(line.startswith("| ") for line in part.splitlines()) == 1 + len(MEASURES)
    ((path, heap),) = make_soak.drawn(run)
    assert f"![{MEASURES[0].key}](images/{path.name})" in part
    assert heap.count('class="dot ') == 60


def test_streams_are_merged_and_begun_in_time() -> None:
    """The later one is not asked for before its begin."""
    asked: list[int] = []

    def stream(*times_ms: int) -> Iterator[TopicRecord]:
        asked.append(times_ms[0])
        for at_ms in times_ms:
            yield TopicRecord(0, at_ms, None, b"", ())

    records = merged([(0, stream(1, 3, 9)), (4, stream(4, 6))])
    assert [next(records).timestamp_ms for _ in range(2)] == [1, 3]
    assert asked == [1]
    assert [one.timestamp_ms for one in records] == [4, 6, 9]


def test_traffic_is_the_same_for_a_seed_and_has_invalid_records() -> None:
    """And a second generation after a minute, under other names."""
    start_ms = 1_790_000_000_000

    def first_minute() -> list[TopicRecord]:
        until_ms = start_ms + (STRIDE_S + 2) * 1_000
        records = traffic(1, start_ms)
        return [*takewhile(lambda one: one.timestamp_ms < until_ms, records)]

    records = first_minute()
    assert records == first_minute()
    assert sum(one.value[:1] == b"\xff" for one in records) == len(records) // 201
    keys = {(one.key or b"").split(b"-")[0] for one in records}
    assert {b"live0", b"live1"} <= keys
    times_ms = [one.timestamp_ms for one in records]
    assert times_ms == sorted(times_ms)
