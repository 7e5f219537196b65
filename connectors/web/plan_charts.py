"""Charts of forecasts, with past values, forecast values, and the limit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from connectors.web.charts import Chart, Series
from connectors.web.words import NOTHING
from sds_core.observer.figures import Scale
from sds_core.planning.forecast import BEFORE_DAYS, Forecast, Outlook
from sds_core.planning.hours import DAY_MS
from sds_core.planning.limits import Reached
from sds_core.planning.words import amount, figure_name, interval, limit_name, part_of
from sds_core.text import day_and_month

AHEAD_DAYS = BEFORE_DAYS
"""Number of future days in a chart. If the chart has a limit that is reached later, the
chart has more days."""

_TICKS = 5
_WEEK_DAYS = 7


def forecast_charts(forecast: Forecast) -> list[Chart]:
    """Return a view's charts: bytes, parts of the bytes, messages, and each limit."""
    charts = [
        figure_chart(forecast, name, title)
        for name, title in (("bytes", "Bytes a day"), ("messages", "Messages a day"))
        if name in forecast.figures
    ]
    charts[1:1] = _parts_chart(forecast)
    for limit in forecast.limits:
        if limit.name in forecast.figures:
            charts.append(_limit_chart(forecast, limit))
    return charts


def _limit_chart(forecast: Forecast, limit: Reached) -> Chart:
    title, note = limit_name(limit.name), figure_name(limit.name)
    title, note = (f"{text[0].upper()}{text[1:]}" for text in (title, note))
    return figure_chart(forecast, limit.name, title, f"{note}.", limit)


def figure_chart(
    forecast: Forecast,
    name: str,
    title: str,
    note: str = "",
    limit: Reached | None = None,
) -> Chart:
    """Return a chart of daily values: measured days, then forecast days."""
    outlook = forecast.figures[name]
    ahead = outlook.days[: _days_shown(forecast, outlook, limit)]
    before = outlook.before
    no_past, no_future = [None] * len(before), [None] * len(ahead)
    series = [
        Series(
            "Measured",
            [*before, *no_future],
            [*(amount(name, day) for day in before), *(NOTHING for _ in ahead)],
        ),
        Series(
            "Forecast",
            [*no_past, *(day.mid for day in ahead)],
            [
                *(NOTHING for _ in before),
                *(f"{amount(name, day.mid)} ({interval(name, day)})" for day in ahead),
            ],
            spans=[*no_past, *((day.low, day.high) for day in ahead)],
        ),
    ]
    times = _times(forecast, len(before), len(ahead))
    if limit is not None:
        line = f"Limit {amount(name, limit.limit)}"
        series.append(Series.limit(line, limit.limit, len(times)))
    return Chart(
        name, title, note, Scale.COUNT, times, _ticks(times), series,
        partial(amount, name), heading="Day",
    )  # fmt: skip


def _parts_chart(forecast: Forecast) -> list[Chart]:
    # The list is empty if the forecast has no figures of parts of frames.
    parts = {name: one for name, one in forecast.figures.items() if part_of(name)}
    if not parts:
        return []
    series = []
    for name, outlook in parts.items():
        values = [*outlook.before, *(day.mid for day in outlook.days[:AHEAD_DAYS])]
        texts = [amount(name, value) for value in values]
        series.append(Series(part_of(name), values, texts))
    past = len(next(iter(parts.values())).before)
    times = _times(forecast, past, len(series[0].values) - past)
    note = "Pale bars show the forecast."
    return [
        Chart(
            "parts", "Bytes a day for each part of a frame", note, Scale.PARTS, times,
            _ticks(times), series, partial(amount, "bytes"), past, heading="Day",
        )
    ]  # fmt: skip


def _days_shown(forecast: Forecast, outlook: Outlook, limit: Reached | None) -> int:
    if limit is None or limit.at_ms is None:
        return AHEAD_DAYS
    until = (limit.latest_ms or limit.at_ms) - forecast.begin_ms
    return max(AHEAD_DAYS, min(until // DAY_MS + _WEEK_DAYS, len(outlook.days)))


def _times(forecast: Forecast, before: int, ahead: int) -> list[str]:
    return [
        day_and_month(forecast.begin_ms + day * DAY_MS) for day in range(-before, ahead)
    ]


def _ticks(times: Sequence[str]) -> list[str]:
    weeks = -(-len(times) // (_WEEK_DAYS * _TICKS))
    return list(times[:: weeks * _WEEK_DAYS])
