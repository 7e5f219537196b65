"""Means of repeated simulations, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from sds_core.planning.errors import ModelMissing


class Estimate(NamedTuple):
    """Mean of a figure over runs, and the bounds of its confidence interval.

    If the figure is exact, mean and bounds are equal. If no run has the figure, mean
    and bounds are NaN. If only one run has the figure, the bounds are infinite.
    """

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """Return the estimate of an exact figure: both bounds are equal to `value`."""
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
    """Return the mean of a figure over independent runs, with Student's t interval.

    Each value is the figure of one run, or NaN if the run lacks the figure. `coverage`
    is the probability that the interval contains the true mean, in (0, 1).

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
        # If all runs have the same value, for example a ratio of 1, it counts as exact.
        return Estimate.exact(mean)
    try:
        from scipy.special import stdtrit
    except ImportError as error:
        raise ModelMissing from error
    quantile = float(stdtrit(len(known) - 1, (1 + coverage) / 2))
    half = quantile * float(known.std(ddof=1)) / math.sqrt(len(known))
    return Estimate(mean, mean - half, mean + half)


def difference(values: Sequence[float], base: Sequence[float]) -> Estimate:
    """Return the mean of the differences `values` - `base`, with its interval.

    The two runs at the same position have the same seed, so their traffic and losses
    are similar. Therefore, the interval is narrower than for runs with different seeds.
    """
    return estimated([one - other for one, other in zip(values, base, strict=True)])
