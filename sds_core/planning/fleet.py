"""Makes forecasts of all views in a history, and of the sum of the views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sds_core.planning.errors import NoForecast, NotFitted
from sds_core.planning.forecast import (
    Daily,
    Forecast,
    ForecastSettings,
    daily_figures,
    forecast,
    forecast_daily,
    sum_daily,
)
from sds_core.planning.hours import hours_of
from sds_core.planning.measures import Measures

HourlyRows = Mapping[str, Sequence[Mapping[str, Any]]]
"""For each view, one row per hour in which a figure changed; see `hours.hours_of`."""


class Fleet(NamedTuple):
    """Forecasts of all views.

    Attributes:
        views: The forecast of each view, by the view's name, in the order of the
            history.
        without: For each view without a forecast, by name: the reason.
        total: Forecast of the figures' sums over `views`; it has no limits. None if
            `views` is empty, or if the model does not fit a sum.
        hidden: Number of views that have no forecast because the time was over.
    """

    views: Mapping[str, Forecast]
    without: Mapping[str, NoForecast]
    total: Forecast | None
    hidden: int = 0


def forecast_fleet(
    rows: HourlyRows,
    measures: Measures,
    settings: ForecastSettings,
    *,
    end_ms: int,
    now_ms: int,
    progress: Callable[[int], None] = lambda done: None,
    is_over: Callable[[], bool] = lambda: False,
) -> Fleet:
    """Return the forecasts of views. All forecasts start at `end_ms`.

    Views are processed in the order of `rows`. After each forecast, `progress` is
    called with the number of views processed so far, including views without a
    forecast. `is_over` is called before each view; if it returns True, this view and
    all later views get no forecast. For `end_ms` and `now_ms`, see `hours.hours_of`.

    Raises:
        sds_core.planning.errors.ModelMissing: statsmodels is not installed.
    """
    views: dict[str, Forecast] = {}
    without: dict[str, NoForecast] = {}
    summed: list[Daily] = []
    for done, (name, of_view) in enumerate(rows.items(), start=1):
        if is_over():
            break
        try:
            hours = hours_of(
                of_view,
                measures.counters,
                measures.gauges,
                end_ms=end_ms,
                now_ms=now_ms,
            )
            views[name] = forecast(hours, measures.parts, settings)
        except NoForecast as error:
            without[name] = error
            continue
        summed.append(daily_figures(hours, measures.parts, settings))
        progress(done)
    hidden = len(rows) - len(views) - len(without)
    return Fleet(views, without, _total(views, summed, end_ms, settings), hidden)


def _total(
    views: Mapping[str, Forecast],
    summed: Sequence[Daily],
    end_ms: int,
    settings: ForecastSettings,
) -> Forecast | None:
    if not summed:
        return None
    if len(summed) > 1:
        try:
            return forecast_daily(sum_daily(summed), end_ms, settings)
        except NotFitted:
            return None
    # The sum of a single view has the same forecast as the view. This forecast is not
    # computed again, because that would take one second.
    (view,) = views.values()
    names = {*summed[0], "kafka.storage"}
    figures = {name: one for name, one in view.figures.items() if name in names}
    return view._replace(figures=figures, limits=())
