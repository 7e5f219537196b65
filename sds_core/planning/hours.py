"""Computes a view's hourly figures from the rows of its history.

A history has a row for each minute in which a figure changed. Counters in a row are
cumulative. Therefore, the growth of counters follows from the last row of each hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sds_core.planning.errors import ClockJumped, Silent, TooLittleHistory

HOUR_MS = 3_600_000
DAY_HOURS = 24
DAY_MS = DAY_HOURS * HOUR_MS
MINUTE_MS = 60_000

SILENCE_MS = 3 * DAY_MS
"""Maximum time without a row of a view, ms. After a longer time, the view is silent.

The maximum is longer than a weekend. Only figures after the last silence are used.
"""

CLOCK_MS = DAY_MS
"""Maximum time by which the newest row may be later than the wall time, ms.

If a row is still later, a clock is wrong, and `hours_of` raises `ClockJumped`.
"""

LEAST_DAYS = 14
"""Minimum number of whole days of history for a forecast.

In this time, each weekday occurs twice. A single value of a weekday may be due to
chance.
"""

Floats = npt.NDArray[np.float64]


class Hours(NamedTuple):
    """Figures of a view for each hour.

    Attributes:
        end_ms: End of the last hour, Unix ms of event time.
        grown: By counter, its growth in each hour, shape (hours,).
        gauges: By gauge, its value in each hour, shape (hours,). An hour without a
            value has the last known value. The hours before the first known value have
            this first value. If no value is known, the gauge is 0.
    """

    end_ms: int
    grown: Mapping[str, Floats]
    gauges: Mapping[str, Floats]


def hour_rows(
    rows: Iterable[Mapping[str, Any]], gauges: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the last row of each hour, but with the hour's maximum of each gauge.

    `rows` must be in order of ``minute``. Null values of gauges are ignored; if an hour
    has no other value of a gauge, the maximum is null.
    """
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        hour = row["minute"] // HOUR_MS
        before = found.get(hour, {})
        merged = dict(row)
        for name in gauges:
            known = [one[name] for one in (before, row) if one.get(name) is not None]
            merged[name] = max(known, default=None)
        found[hour] = merged
    return list(found.values())


def last_hour_ms(newest_ms: int) -> int:
    """Return when the last complete hour of a history ends, Unix ms.

    `newest_ms` is the start of the newest minute in the history.
    """
    return (newest_ms + MINUTE_MS) // HOUR_MS * HOUR_MS


def hours_of(
    rows: Sequence[Mapping[str, Any]],
    counters: Sequence[str],
    gauges: Sequence[str],
    *,
    end_ms: int,
    now_ms: int,
    least_days: int = LEAST_DAYS,
) -> Hours:
    """Return a view's hourly figures from the end of its last silence until `end_ms`.

    Args:
        rows: One row per hour in which a figure changed, in order of ``minute``.
        counters: Fields that only increase. A smaller value means that the counter
            restarted. An absent or null value counts as 0.
        gauges: Fields that can increase and decrease. An absent or null value is
            unknown.
        end_ms: End of the last hour, see `last_hour_ms`.
        now_ms: Wall time, Unix ms.
        least_days: Minimum number of whole days in the result.

    Raises:
        ClockJumped: The newest row is more than `CLOCK_MS` later than `now_ms`.
        Silent: The newest row is more than `SILENCE_MS` earlier than `end_ms`.
        TooLittleHistory: The result would have fewer than `least_days` whole days, or
            no hour.
    """
    if not rows:
        raise TooLittleHistory(0, least_days)
    if rows[-1]["minute"] > now_ms + CLOCK_MS:
        raise ClockJumped(rows[-1]["minute"])
    minutes = np.array([row["minute"] for row in rows], np.int64)
    if end_ms - minutes[-1] > SILENCE_MS:
        raise Silent(int(minutes[-1]) + MINUTE_MS)
    silences = np.flatnonzero(np.diff(minutes) > SILENCE_MS)
    first = int(silences[-1]) + 1 if len(silences) else 0
    used = rows[first:]
    # The growth in the hour of the first row is unknown, because no earlier row is
    # used. Therefore, the result begins with the next hour.
    begin = int(minutes[first]) // HOUR_MS + 1
    number = end_ms // HOUR_MS - begin
    whole_days = max(number, 0) // DAY_HOURS
    if whole_days < least_days or number < 1:
        after_ms = int(minutes[first]) if first else None
        raise TooLittleHistory(whole_days, least_days, after_ms)
    at = minutes[first:] // HOUR_MS - begin
    inside = (at >= 0) & (at < number)
    return Hours(
        end_ms,
        {name: _growth(used, name, at, inside, number) for name in counters},
        {name: _filled(used, name, at, number) for name in gauges},
    )


def by_day(hours: Floats) -> Floats:
    """Return hourly values as rows of 24 h, shape (days, 24).

    The last row ends with the last hour. The first hours are omitted if they do not
    fill a row.
    """
    days = len(hours) // DAY_HOURS
    return hours[len(hours) - days * DAY_HOURS :].reshape(days, DAY_HOURS)


def _growth(
    rows: Sequence[Mapping[str, Any]],
    name: str,
    at: npt.NDArray[np.int64],
    inside: npt.NDArray[np.bool_],
    hours: int,
) -> Floats:
    totals = np.array([row.get(name) or 0 for row in rows], np.float64)
    steps = np.diff(totals, prepend=totals[:1])
    # If the job started with a new checkpoint, a counter restarted from zero, so it
    # decreased. Its new value is its growth.
    steps = np.where(steps < 0, totals, steps)
    return np.bincount(at[inside], steps[inside], hours).astype(np.float64)


def _filled(
    rows: Sequence[Mapping[str, Any]],
    name: str,
    at: npt.NDArray[np.int64],
    hours: int,
) -> Floats:
    # An unknown value becomes NaN. It must not become 0: in a silence, no filter is in
    # use, and a filter without ids would count as rolled over.
    values = np.array([row.get(name) for row in rows], np.float64)
    known = ~np.isnan(values) & (at < hours)
    if not known.any():
        return np.zeros(hours)
    last = np.searchsorted(at[known], np.arange(hours), side="right") - 1
    found: Floats = values[known][np.maximum(last, 0)]
    return found
