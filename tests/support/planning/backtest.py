"""Backtests of forecasts on simulated months: the week after the history is known."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.planning.forecast import Forecast, ForecastSettings, forecast
from sds_core.planning.hours import DAY_MS, Floats, hours_of
from sds_core.planning.measures import measures_of
from sds_core.planning.model import draw_paths
from tests.support.planning.month import Month

HISTORY_DAYS = 30
WEEK_DAYS = 7
_GROWTH = (0.01, 0.0, 0.02, -0.005)
_DAY_NOISE = (0.03, 0.06, 0.1)
_PERSISTENCE = (0.0, 0.3, 0.7)

Model = Callable[[Floats, int], Floats]
"""Returns futures like `draw_paths`."""


class Backtest(NamedTuple):
    """What a forecast said of the mean of a figure in the next week.

    Attributes:
        low: Lower end of the interval of 80 %.
        mid: The median.
        high: Upper end.
        truth: What was.
    """

    low: float
    mid: float
    high: float
    truth: float

    @property
    def covers(self) -> bool:
        """Whether the interval has the truth."""
        return self.low <= self.truth <= self.high

    @property
    def error(self) -> float:
        """Absolute error of the median, as a share of the truth."""
        return abs(self.mid / self.truth - 1)


@functools.cache
def month(number: int) -> Month:
    """Return one of the simulated months: all growths, noises and persistences."""
    return Month(
        seed=number,
        growth=_GROWTH[number % len(_GROWTH)],
        day_noise=_DAY_NOISE[number % len(_DAY_NOISE)],
        persistence=_PERSISTENCE[number // 3 % len(_PERSISTENCE)],
    )


def backtest(number: int, model: Model = draw_paths) -> Backtest:
    """Return the backtest of the bytes of a simulated month."""
    values = month(number).bytes_by_day.astype(float)
    paths = model(values[:HISTORY_DAYS], WEEK_DAYS)
    low, mid, high = np.quantile(paths.mean(axis=0), [0.1, 0.5, 0.9])
    truth = values[HISTORY_DAYS : HISTORY_DAYS + WEEK_DAYS].mean()
    return Backtest(low, mid, high, truth)


def forecast_of(channel: Month, settings: ForecastSettings) -> Forecast:
    """Return the forecast of a simulated channel after 30 days."""
    measures = measures_of(CHANNEL_FIGURES)
    end_ms = channel.begin_ms + HISTORY_DAYS * DAY_MS
    hours = hours_of(
        channel.rows(HISTORY_DAYS),
        measures.counters,
        measures.gauges,
        end_ms=end_ms,
        now_ms=end_ms,
    )
    return forecast(hours, measures.parts, settings)
