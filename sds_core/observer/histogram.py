"""Counts durations in buckets, and computes percentiles."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

BUCKETS_MS = (
    250, 500, 1_000, 2_500, 5_000, 10_000,
    20_000, 30_000, 60_000, 120_000, 300_000, 600_000,
)  # fmt: skip
"""Upper bounds of the buckets of every histogram, milliseconds, inclusive."""

PERCENTILES = (50, 95, 99)
"""Percentiles that report and API show."""


class Histogram(msgspec.Struct, array_like=True):
    """The number of durations in each bucket.

    Attributes:
        counts: Number of durations in each bucket of `BUCKETS_MS`, then in the bucket
            without an upper bound. The counts are not cumulative. Shape (13,).
        sum_ms: Sum of all durations in milliseconds.
    """

    counts: list[int] = msgspec.field(
        default_factory=lambda: [0] * (len(BUCKETS_MS) + 1)
    )
    sum_ms: int = 0

    @property
    def count(self) -> int:
        """Number of all durations."""
        return sum(self.counts)

    def observe(self, duration_ms: int) -> None:
        """Count one duration in milliseconds."""
        self.counts[bisect_left(BUCKETS_MS, duration_ms)] += 1
        self.sum_ms += duration_ms

    def add(self, other: Histogram) -> None:
        """Add another histogram's counts and sum to this histogram."""
        self.counts = [
            mine + theirs
            for mine, theirs in zip(self.counts, other.counts, strict=True)
        ]
        self.sum_ms += other.sum_ms

    def copy(self) -> Histogram:
        """An independent copy of this histogram."""
        return Histogram(list(self.counts), self.sum_ms)

    def percentile_ms(self, percent: int) -> int | None:
        """Upper bound of the bucket that contains the percentile (nearest rank).

        Returns:
            Milliseconds; None if the histogram is empty, or if the bucket has no upper
            bound.
        """
        rank = nearest_rank(self.count, percent)
        for bound, count in zip(BUCKETS_MS, self.counts, strict=False):
            rank -= count
            if count and rank <= 0:
                return bound
        return None

    def percentiles(self) -> dict[str, int | None]:
        """Percentiles in milliseconds by name, such as ``p95``; see `percentile_ms`."""
        return {f"p{percent}": self.percentile_ms(percent) for percent in PERCENTILES}

    def summary(self) -> dict[str, int | None]:
        """The count, the sum in ms and the percentiles, as report and API show them."""
        return {"count": self.count, "sum": self.sum_ms} | self.percentiles()


def nearest_rank(count: int, percent: int) -> int:
    """Rank of a percentile among `count` sorted values; the lowest value has rank 1.

    The result is 0 if `count` is 0.
    """
    return -(-count * percent // 100)


def exact_percentiles(durations_ms: Sequence[int]) -> dict[str, int | None]:
    """Compute `PERCENTILES` exactly, from durations in milliseconds in any order.

    The result has the same keys as `Histogram.percentiles`. If `durations_ms` is
    empty, all values are None.
    """
    ordered = sorted(durations_ms)
    return {
        f"p{percent}": ordered[nearest_rank(len(ordered), percent) - 1]
        if ordered
        else None
        for percent in PERCENTILES
    }
