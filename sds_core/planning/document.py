"""Turns forecasts and estimates into JSON objects, for commands and the API."""

from __future__ import annotations

import math
from typing import NotRequired, TypedDict

from sds_core.planning.estimates import Estimate
from sds_core.planning.forecast import Forecast, Interval, Outlook


class IntervalObject(TypedDict):
    """A forecast value: the median `mid`, and the interval from `low` to `high`."""

    low: float | None
    mid: float | None
    high: float | None


class OutlookObject(TypedDict):
    """Forecast of one figure.

    Attributes:
        past: Mean of the figure in the last seven days of the history. For
            `kafka.bytes_per_second`, `epoch_messages`, `message_bytes` and
            `filter_ids`, the maximum in these days. For `epoch_headroom`, the minimum.
            For `kafka.storage`, the value at the end of the history.
        week: Forecast of the figure's mean in the next seven days. For
            `kafka.bytes_per_second`, `kafka.storage`, `epoch_messages`, `message_bytes`
            and `filter_ids`, forecast of the maximum in these days. For
            `epoch_headroom`, forecast of the minimum.
        before: Values of the figure on the last days of the history, oldest first.
        days: Forecast of the figure for each future day.
    """

    past: float | None
    week: IntervalObject
    before: NotRequired[list[float | None]]
    days: NotRequired[list[IntervalObject]]


class ReachedObject(TypedDict):
    """When a figure reaches a limit.

    Attributes:
        now: Value of the figure at the end of the history.
        reached: Time at which half of the simulated futures have reached the limit,
            Unix ms.
        note: For the figure `filter_ids`, the number of ids at which the filter rolls
            over, as text; empty if the filter did not roll over in the history. If the
            filter always rolled over below the limit, `reached` is null. For other
            figures, the note is empty.
    """

    figure: str
    limit: float | None
    now: float | None
    headroom: float | None
    reached: int | None
    reached_earliest: int | None
    reached_latest: int | None
    note: str


class ForecastObject(TypedDict):
    """A forecast.

    Attributes:
        history_days: Number of whole days of history that the forecast uses.
        figures: Forecast of each figure, by name.
        limits: For each limit, the time at which it is reached.
    """

    history_days: int
    figures: dict[str, OutlookObject]
    limits: list[ReachedObject]


def forecast_object(forecast: Forecast, *, is_whole: bool = True) -> ForecastObject:
    """Return a forecast as an object.

    If `is_whole` is false, figures have no values of single days.
    """
    return {
        "history_days": forecast.history_days,
        "figures": {
            name: _outlook(one, is_whole) for name, one in forecast.figures.items()
        },
        "limits": [
            {
                "figure": limit.name,
                "limit": rounded(limit.limit),
                "now": rounded(limit.now),
                "headroom": rounded(limit.headroom),
                "reached": limit.at_ms,
                "reached_earliest": limit.earliest_ms,
                "reached_latest": limit.latest_ms,
                "note": limit.note,
            }
            for limit in forecast.limits
        ],
    }


def estimate_object(estimate: Estimate, digits: int = 6) -> dict[str, float | None]:
    """Return an estimate as an object: the value and the bounds of its interval."""
    return {name: rounded(end, digits) for name, end in estimate._asdict().items()}


def rounded(value: float | None, digits: int = 6) -> float | None:
    """Return a number with `digits` significant digits.

    NaN and infinity give None, because JSON lacks them.
    """
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def _outlook(outlook: Outlook, is_whole: bool) -> OutlookObject:
    week: OutlookObject = {
        "past": rounded(outlook.past),
        "week": _interval(outlook.week),
    }
    if not is_whole:
        return week
    return {
        **week,
        "before": [rounded(day) for day in outlook.before],
        "days": [_interval(day) for day in outlook.days],
    }


def _interval(value: Interval) -> IntervalObject:
    low, mid, high = map(rounded, value)
    return {"low": low, "mid": mid, "high": high}
