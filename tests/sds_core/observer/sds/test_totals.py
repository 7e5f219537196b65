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


def test_buckets_are_those_of_the_contract() -> None:
    """Boundaries in seconds as the exporter shows them."""
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
    """Each has counts of its own, and so have those of new totals."""
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
    """The least rank that leaves no more than the rest above it."""
    assert nearest_rank(count, percent) == rank


def test_percentile_is_the_upper_bound_of_its_bucket() -> None:
    """Ninety-five short ones and five long ones."""
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
    """No field is forgotten: what is added later must be summed as well."""
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
    """Channels without any leave them alone."""
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
    """Not the one with the most bits set; channels without filters leave it alone."""
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


def test_sum_of_nothing_is_nothing() -> None:
    """No channels, no figures; the sum shares nothing with its parts."""
    assert CHANNEL_FIGURES.sum([]) == ChannelTotals()
    part = numbered_totals(1)
    CHANNEL_FIGURES.sum([part]).definite_latency.observe(1)
    assert part == numbered_totals(1)


def test_frames_of_a_kind_are_summed_over_the_dialects() -> None:
    """A kind is matched whole."""
    totals = ChannelTotals(frames={"sync.spec": 1, "sync.nim": 2, "content.nim": 4})
    assert totals.frames_sync == 3
    assert totals.frames_ephemeral == 0


def test_responses_are_those_that_answered_and_the_redundant() -> None:
    """As the identity of section 7 says."""
    assert ChannelTotals(repair_answered=2, repair_redundant=3).repair_responses == 5
