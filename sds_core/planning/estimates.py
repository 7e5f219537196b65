"""Means of repeated runs, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from sds_core.planning.errors import ModelMissing


class Estimate(NamedTuple):
    """A figure: a mean, and the bounds of its interval.

    An exact figure has three equal values; a figure of no run has NaN. The bounds are
    infinite if only one run has the figure.
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
    """Check before a long computation that `estimated` can be called afterwards.

    Raises:
        ModelMissing: scipy is not installed.
    """
    if find_spec("scipy") is None:
        raise ModelMissing


def estimated(values: Sequence[float], coverage: float = 0.95) -> Estimate:
    """Return the mean of independent runs with Student's t interval.

    A value is the figure of a run; NaN for a run without it. `coverage` is the
    probability of the interval, in (0, 1).

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
        # The values are equal in all runs, for example a ratio of 1.
        return Estimate.exact(mean)
    try:
        from scipy.special import stdtrit
    except ImportError as error:
        raise ModelMissing from error
    quantile = float(stdtrit(len(known) - 1, (1 + coverage) / 2))
    half = quantile * float(known.std(ddof=1)) / math.sqrt(len(known))
    return Estimate(mean, mean - half, mean + half)


def difference(values: Sequence[float], base: Sequence[float]) -> Estimate:
    """Return the mean difference of pairs of runs that have the same seed.

    Traffic and losses of a pair are similar, so the interval is narrower than for
    independent runs.
    """
    return estimated([one - other for one, other in zip(values, base, strict=True)])
