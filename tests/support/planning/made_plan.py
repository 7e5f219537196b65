"""Forecasts that are made up at once, where it does not matter what they say."""

from __future__ import annotations

import math
from collections.abc import Iterable

from sds_core.planning.errors import TooLittleHistory
from sds_core.planning.fleet import Fleet
from sds_core.planning.forecast import BEFORE_DAYS, Forecast, Interval, Outlook
from sds_core.planning.hours import DAY_MS
from sds_core.planning.limits import Reached
from sds_core.planning.plan import Plan
from tests.support.planning.month import MONDAY_MS

DAYS = 90
BEGIN_MS = MONDAY_MS + 30 * DAY_MS
PARTS = ("content", "histories", "filters", "requests", "other")


def outlook(level: float) -> Outlook:
    """A figure that grows by 1 % a day, with a week and wider and wider intervals."""

    def of_day(day: int) -> float:
        return level * 1.01**day * (1 + 0.2 * math.sin(day / 7 * 2 * math.pi))

    days = [
        Interval(of_day(day) * (1 - day / 500), of_day(day), of_day(day) * 1.05)
        for day in range(DAYS)
    ]
    before = [of_day(day) for day in range(-BEFORE_DAYS, 0)]
    week = Interval(level * 0.97, level * 1.03, level * 1.08)
    return Outlook(level, week, days, before)


def forecast(level: float = 4_000.0) -> Forecast:
    """A channel with so many messages a day, one limit near, one far, one passed."""
    figures = {
        "bytes": outlook(level * 19_000),
        **{f"bytes.{part}": outlook(level * 19_000 / len(PARTS)) for part in PARTS},
        "messages": outlook(level),
        "epoch_messages": outlook(level / 200),
        "message_bytes": outlook(160_000.0),
        "filter_ids": outlook(level * 25),
        "epoch_headroom": outlook(0.6),
    }
    soon_ms = BEGIN_MS + 3 * DAY_MS
    limits = (
        Reached("epoch_messages", 90.0, level / 200, None, None, None),
        Reached("message_bytes", 153_600.0, 160_000.0, *[BEGIN_MS] * 3),
        Reached("filter_ids", level * 26, level * 25, soon_ms + DAY_MS, soon_ms, None),
    )
    return Forecast(BEGIN_MS, 29, figures, limits)


def plan(names: Iterable[str], without: Iterable[str] = ()) -> Plan:
    """Forecasts of some views, the first with most traffic, and of their sum."""
    views = {name: forecast(4_000.0 / n) for n, name in enumerate(names, start=1)}
    total = forecast(9_000.0)._replace(limits=())
    why = {name: TooLittleHistory(3, 14) for name in without}
    return Plan.of(Fleet(views, why, total), BEGIN_MS + 600_000, DAYS, 0.8, 2)
