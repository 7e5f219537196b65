"""The model of a daily figure: growth, effects of weekdays, and random deviations.

The logarithm of a figure is a sum: a straight line, an effect of the weekday, and a
deviation that depends on the previous day's deviation. Growth and effects of weekdays
are therefore factors on the figure. `docs/planning.md` compares this model with others.
"""

from __future__ import annotations

import warnings

import numpy as np

from sds_core.planning.errors import ModelMissing, NotFitted
from sds_core.planning.hours import Floats

PATHS = 500
"""Number of simulated futures: enough for the 10th and 90th percentile."""

_SEED = 20_261_124
_WEEK = 7
# This limit prevents the overflow of a steep line. In bytes, the limit e^41 is 600 PB.
_GREATEST_LOG = 41.0
# Because of rounding, equal sums of floats can differ, but by less than this.
_LEAST_CHANGE = 1e-9


def draw_paths(values: Floats, days: int) -> Floats:
    """Return possible futures of a daily figure, shape (days, `PATHS`).

    The futures differ for two reasons: each day has a random deviation, and the line
    and the effects of weekdays are uncertain. The same values give the same futures.

    `values` has the figure on each day, not negative, shape (n,) with n >= 14.

    Raises:
        ModelMissing: statsmodels is not installed.
        NotFitted: The model has no solution for the values.
    """
    logs = np.log1p(values)
    if np.ptp(logs) < _LEAST_CHANGE:
        return np.full((days, PATHS), values[-1])
    try:
        # The import is here, because it takes one second and the module may not be
        # installed.
        from statsmodels.tsa.statespace.structural import UnobservedComponents
    except ImportError as error:
        raise ModelMissing from error
    model = UnobservedComponents(
        logs,
        level="deterministic trend",
        seasonal=_WEEK,
        stochastic_seasonal=False,
        autoregressive=1,
    )
    with warnings.catch_warnings():
        # A figure that follows its line exactly has no deviation to estimate.
        warnings.simplefilter("ignore")
        try:
            fitted = model.fit(disp=False)
            drawn = fitted.simulate(
                days, anchor="end", repetitions=PATHS, rng=np.random.default_rng(_SEED)
            )
        except np.linalg.LinAlgError as error:
            raise NotFitted from error
    paths = np.asarray(drawn, np.float64).reshape(days, PATHS)
    return np.maximum(np.expm1(np.minimum(paths, _GREATEST_LOG)), 0.0)
