"""Means of repeated simulations, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from sds_core.planning.errors import ModelMissing


class Estimate(NamedTuple):
    """A figure: a mean over runs, and the bounds of its confidence interval.

    If the figure is exact, the three values are equal. If no run has the figure, the
    three values are NaN. If only one run has the figure, the bounds are infinite.
    """

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """Return a figure without uncertainty."""
        return cls(value, value, value)


NOTHING = Estimate.exact(math.nan)


def require_scipy() -> None:
    """Check that scipy is installed, because `estimated` needs scipy.

    Call this function before a long computation that ends with `estimated`.

    Raises:
        ModelMissing: scipy is not installed.
    """
    if find_spec("scipy") is None:
        raise ModelMissing


def estimated(values: Sequence[float], coverage: float = 0.95) -> Estimate:
    """Return the mean of independent runs with Student's t interval.

    Each value is the figure of one run, or NaN if the run lacks the figure. `coverage`
    is the probability of the interval, in (0, 1).

    Raises:
        ModelMissing: scipy is not installed.
    """
    known = np.array(values, np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return NOTHING
    mean = float(known.mean())
    if len(known) == 1:
        return Estimate(mean, -math.inf, math.inf)
    if np.ptp(known) == 0:
        # All runs have the same value, for example a ratio of 1.
        return Estimate.exact(mean)
    try:
        from scipy.special import stdtrit
    except ImportError as error:
        raise ModelMissing from error
    quantile = float(stdtrit(len(known) - 1, (1 + coverage) / 2))
    half = quantile * float(known.std(ddof=1)) / math.sqrt(len(known))
    return Estimate(mean, mean - half, mean + half)


def difference(values: Sequence[float], base: Sequence[float]) -> Estimate:
    """Return the mean difference of pairs of runs.

    Both runs of a pair have the same seed, so their traffic and losses are similar.
    Therefore, the interval is narrower than for independent runs.
    """
    return estimated([one - other for one, other in zip(values, base, strict=True)])
