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

    If the figure is exact, the three values are equal. If no run has the figure, they
    are NaN. If only one run has it, the bounds are infinite.
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
    """Before a long computation, check that `estimated` can be called after it.

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
    """Return the mean difference of pairs of runs. A pair has the same seed.

    The runs of a pair have similar traffic and losses, so the interval is narrower than
    for independent runs.
    """
    return estimated([one - other for one, other in zip(values, base, strict=True)])
