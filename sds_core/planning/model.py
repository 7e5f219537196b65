"""Models a daily figure by growth, effects of weekdays, and random deviations.

The logarithm of a figure is the sum of a straight line, an effect of the weekday, and a
deviation that depends on the previous day's deviation. Therefore, growth and weekdays
change the figure by factors, not by fixed amounts. `docs/planning.md` compares this
model with others.
"""

from __future__ import annotations

import warnings

import numpy as np

from sds_core.planning.errors import ModelMissing, NotFitted
from sds_core.planning.hours import Floats

PATHS = 500
"""Number of simulated futures: enough for the 10th and 90th percentiles of futures."""

_SEED = 20_261_124
_WEEK = 7
# Maximum natural logarithm of a simulated value. The maximum prevents an overflow of
# the value if growth is steep. e^41 bytes are 640 PB.
_GREATEST_LOG = 41.0
# If the logarithms of all values differ by less than this, the figure counts as
# constant, because rounding errors of sums can cause such differences.
_LEAST_CHANGE = 1e-9


def draw_paths(values: Floats, days: int) -> Floats:
    """Return simulated futures of a daily figure, shape (days, `PATHS`).

    Growth and the effects of weekdays can only be estimated, so each future has its own
    estimates and its own random deviations. Equal arguments give equal futures.

    `values` has the figure on each day of the history, shape (n,) with n >= 14. No
    value is negative.

    Raises:
        ModelMissing: statsmodels is not installed.
        NotFitted: The model has no solution for the values.
    """
    logs = np.log1p(values)
    if np.ptp(logs) < _LEAST_CHANGE:
        return np.full((days, PATHS), values[-1])
    try:
        # Imported only here, because the import takes one second, and the module may
        # not be installed.
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
        # If the figure has no deviations from the model, statsmodels warns that they
        # cannot be estimated. This warning is ignored.
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
