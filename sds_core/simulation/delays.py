"""Distributions from which delays of frames are drawn."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.random import Generator
from numpy.typing import NDArray

from sds_core.reading import Table, contradiction

# A delay in a scenario is at most one hour, because a frame with a longer delay would
# count as lost.
Milliseconds = Annotated[float, Meta(ge=0, le=3_600_000)]
_PositiveMilliseconds = Annotated[float, Meta(gt=0, le=3_600_000)]


class _Distribution(Table, frozen=True, kw_only=True, tag_field="distribution"):
    """Base of all distributions.

    In a scenario, the key `distribution` names the distribution, for example `uniform`.
    """


class Uniform(_Distribution, frozen=True, kw_only=True, tag="uniform"):
    """Uniform distribution from `low_ms` to `high_ms`."""

    low_ms: Milliseconds
    high_ms: Milliseconds

    def __post_init__(self) -> None:
        """Raise ValueError if low_ms is above high_ms."""
        if self.low_ms > self.high_ms:
            rule = "low_ms must not exceed high_ms"
            raise contradiction(rule, low_ms=self.low_ms, high_ms=self.high_ms)

    def draw(self, generator: Generator, count: int) -> NDArray[np.float64]:
        """Return `count` delays, in ms."""
        return generator.uniform(self.low_ms, self.high_ms, count)


class Exponential(_Distribution, frozen=True, kw_only=True, tag="exponential"):
    """Exponential distribution that starts at `least_ms` and has mean `mean_ms`."""

    mean_ms: _PositiveMilliseconds
    least_ms: Milliseconds = 0.0

    def __post_init__(self) -> None:
        """Raise ValueError if least_ms is not below mean_ms."""
        if self.least_ms >= self.mean_ms:
            rule = "least_ms must be below mean_ms"
            raise contradiction(rule, least_ms=self.least_ms, mean_ms=self.mean_ms)

    def draw(self, generator: Generator, count: int) -> NDArray[np.float64]:
        """Return `count` delays, in ms."""
        beyond_ms = self.mean_ms - self.least_ms
        return self.least_ms + generator.exponential(beyond_ms, count)


class Lognormal(_Distribution, frozen=True, kw_only=True, tag="lognormal"):
    """Log-normal distribution: many short delays and few long delays.

    Attributes:
        median_ms: median: half of the delays are shorter.
        sigma: standard deviation of the natural logarithm of the delays. If it is 0.5,
            about one delay in a hundred exceeds three times the median.
    """

    median_ms: _PositiveMilliseconds
    sigma: Annotated[float, Meta(ge=0, le=3)]

    def draw(self, generator: Generator, count: int) -> NDArray[np.float64]:
        """Return `count` delays, in ms."""
        return generator.lognormal(math.log(self.median_ms), self.sigma, count)


Delay = Uniform | Exponential | Lognormal
