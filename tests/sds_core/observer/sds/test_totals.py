"""Totals, their histograms and their sum over channels (docs/figures.md, 11)."""

from __future__ import annotations

import math

import msgspec
import pytest

from sds_core.observer.histogram import BUCKETS_MS, Histogram, nearest_rank
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import BloomGauge, ChannelTotals
from sds_core.observer.verdict import Verdict
from tests.support.totals import numbered_totals


@pytest.fixture
def numbered() -> ChannelTotals:
    """Totals in which every counter and histogram has a number of its own."""
    return numbered_totals(1)


def test_buckets_are_those_of_the_documentation() -> None:
    """Boundaries in seconds, as exported."""
    seconds = [0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600]
    assert [bound / 1_000 for bound in BUCKETS_MS] == seconds


@pytest.mark.parametrize("index", range(len(BUCKETS_MS)))
def test_bucket_bounds_are_inclusive(index: int) -> None:
    """A duration at the bound lies in it, a millisecond more in the next."""
    histogram = Histogram()
    histogram.observe(BUCKETS_MS[index])
    histogram.observe(BUCKETS_MS[index] + 1)
    assert histogram.counts[index : index + 2] == [1, 1]
    assert histogram.count == 2
    assert histogram.sum_ms == 2 * BUCKETS_MS[index] + 1


def test_new_histograms_share_no_counts() -> None:
    """Nor do new totals."""
    first, second = ChannelTotals(), ChannelTotals()
    first.definite_latency.observe(1)
    first.frames["sync.spec"] = 1
    assert second.definite_latency.count == 0
    assert first.probable_latency.count == 0
    assert second.frames == {}


@pytest.mark.parametrize(
    ("count", "percent", "rank"),
    [(0, 50, 0), (1, 50, 1), (1, 99, 1), (2, 50, 1), (3, 50, 2), (100, 95, 95),
     (101, 95, 96), (200, 99, 198)],
)  # fmt: skip
def test_nearest_rank_rounds_up(count: int, percent: int, rank: int) -> None:
    """Rank is n times the percentile, rounded up."""
    assert nearest_rank(count, percent) == rank


def test_percentile_is_the_upper_bound_of_its_bucket() -> None:
    """With 95 short durations and five long ones."""
    histogram = Histogram()
    for _ in range(95):
        histogram.observe(100)
    for _ in range(5):
        histogram.observe(4_000)
    assert histogram.percentile_ms(50) == 250
    assert histogram.percentile_ms(95) == 250
    assert histogram.percentile_ms(96) == 5_000
    assert histogram.percentile_ms(99) == 5_000


def test_percentile_of_nothing_or_in_the_open_bucket_is_unknown() -> None:
    """The open bucket has no upper bound."""
    histogram = Histogram()
    assert histogram.percentile_ms(50) is None
    histogram.observe(1)
    histogram.observe(600_001)
    assert histogram.percentile_ms(50) == 250
    assert histogram.percentile_ms(99) is None


def test_sum_adds_every_counter_and_histogram(numbered: ChannelTotals) -> None:
    """A new field must be summed too."""
    other = numbered_totals(10)
    total = CHANNEL_FIGURES.sum([numbered, other])
    for field in msgspec.structs.fields(ChannelTotals):
        mine = getattr(numbered, field.name)
        if field.name in {"clock_ms", "epoch_messages_max"}:
            largest = max(mine, getattr(other, field.name))
            assert getattr(total, field.name) == largest, field.name
        elif type(mine) is int:
            assert getattr(total, field.name) == 11 * mine, field.name
        elif isinstance(mine, Histogram):
            merged = getattr(total, field.name)
            assert merged.count == 11 * mine.count, field.name
            assert merged.sum_ms == 11 * mine.sum_ms, field.name


def test_sum_takes_the_outermost_times_and_adds_frames() -> None:
    """Channels without a time do not matter."""
    first = ChannelTotals(
        first_event_ms=5, last_event_ms=9, oldest_in_flight_ms=7,
        frames={"sync.spec": 1, "content.nim": 2},
    )  # fmt: skip
    second = ChannelTotals(
        first_event_ms=3, last_event_ms=8, oldest_in_flight_ms=8,
        frames={"sync.spec": 4}, verdict=Verdict.FAILING,
    )  # fmt: skip
    total = CHANNEL_FIGURES.sum([first, second, ChannelTotals()])
    assert (total.first_event_ms, total.last_event_ms) == (3, 9)
    assert total.oldest_in_flight_ms == 7
    assert total.frames == {"sync.spec": 5, "content.nim": 2}
    assert total.verdict is Verdict.WARMING_UP


def test_filter_of_the_sum_is_the_one_with_the_highest_rate() -> None:
    """Not that with the most bits set; channels without filters do not matter."""
    large = BloomGauge(50_000, 150_000, 10)
    small = BloomGauge(800, 1_600, 10, one_percent_ms=5)
    channels = [ChannelTotals(bloom_worst=one) for one in (large, small, None)]
    assert CHANNEL_FIGURES.sum(channels).bloom_worst == small
    assert CHANNEL_FIGURES.sum(channels[::-1]).bloom_worst == small


def test_filter_is_gauged_by_its_fill() -> None:
    """Half of the bits: a rate of 1 in 2^k, and m/k ln 2 ids."""
    gauge = BloomGauge(75_000, 150_000, 10)
    assert gauge.false_positive_ratio == 2**-10
    assert gauge.ids == pytest.approx(15_000 * math.log(2))
    assert BloomGauge(0, 150_000, 10).ids == 0
    assert BloomGauge(150_000, 150_000, 10).ids == math.inf


def test_sum_of_no_channels_is_zero() -> None:
    """The sum shares no object with its parts."""
    assert CHANNEL_FIGURES.sum([]) == ChannelTotals()
    part = numbered_totals(1)
    CHANNEL_FIGURES.sum([part]).definite_latency.observe(1)
    assert part == numbered_totals(1)


def test_frames_of_a_kind_are_summed_over_the_dialects() -> None:
    """The kind must match completely."""
    totals = ChannelTotals(frames={"sync.spec": 1, "sync.nim": 2, "content.nim": 4})
    assert totals.frames_sync == 3
    assert totals.frames_ephemeral == 0


def test_responses_are_answers_and_redundant_ones() -> None:
    """See docs/figures.md, 7."""
    assert ChannelTotals(repair_answered=2, repair_redundant=3).repair_responses == 5
