"""Forecasts and estimates as JSON objects: of `plan … --format json` and of the API."""

from __future__ import annotations

import math
from typing import Any

from sds_core.planning.estimates import Estimate
from sds_core.planning.forecast import Forecast, Interval, Outlook


def forecast_object(forecast: Forecast, *, is_whole: bool = True) -> dict[str, Any]:
    """Return a forecast with all days of its figures, or with the weeks alone."""
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
    """Return a mean with its interval."""
    return {name: rounded(end, digits) for name, end in estimate._asdict().items()}


def rounded(value: float | None, digits: int = 6) -> float | None:
    """Return a number with so many digits; None, as JSON has NaN and infinity."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def _outlook(outlook: Outlook, is_whole: bool) -> dict[str, Any]:
    week = {"past": rounded(outlook.past), "week": _interval(outlook.week)}
    if not is_whole:
        return week
    return {
        **week,
        "before": [rounded(day) for day in outlook.before],
        "days": [_interval(day) for day in outlook.days],
    }


def _interval(value: Interval) -> dict[str, float | None]:
    return {name: rounded(end) for name, end in value._asdict().items()}
