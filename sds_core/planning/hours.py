"""The figures of a view by hour, from the rows of its history.

A row has the cumulative figures at the end of its minute. A minute without a change has
no row. So the last row of each hour is enough.
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
"""If a view has no row for longer than this duration, ms, it counts as silent.

The duration is longer than a weekend. Figures from before a silence are not used.
"""

CLOCK_MS = DAY_MS
"""If a row is later than now by more than this duration, ms, a clock was wrong."""

LEAST_DAYS = 14
"""Minimum number of whole days of history.

Each weekday occurs twice, because a single value may be due to chance.
"""

Floats = npt.NDArray[np.float64]


class Hours(NamedTuple):
    """Figures of a view for each hour.

    Attributes:
        end_ms: End of the last hour, Unix ms of event time.
        grown: Growth of each counter in each hour, shape (hours,).
        gauges: Value of each gauge in each hour, shape (hours,). If an hour has no row,
            it has the value of the previous hour.
    """

    end_ms: int
    grown: Mapping[str, Floats]
    gauges: Mapping[str, Floats]


def hour_rows(
    rows: Iterable[Mapping[str, Any]], gauges: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the last row of each hour, with the maximum of each gauge in the hour.

    `rows` must be in order of ``minute``. Null values count as absent.
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
    """Return when the last complete hour ends, Unix ms.

    `newest_ms` is the start of the newest minute of the history.
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
    """Return the hours of a view from its last silence until `end_ms`.

    Args:
        rows: One row per hour in which a figure changed, in order of ``minute``. An
            absent or null figure counts as 0.
        counters: Fields that only increase. A smaller value means that the counter
            restarted.
        gauges: Fields that can increase and decrease.
        end_ms: End of the last hour, see `last_hour_ms`.
        now_ms: Wall time, Unix ms.
        least_days: Minimum number of whole days.

    Raises:
        ClockJumped: A row is more than `CLOCK_MS` later than `now_ms`.
        Silent: No row is in the last `SILENCE_MS` before `end_ms`.
        TooLittleHistory: Fewer than `least_days` whole days can be used, or no hour can
            be used.
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
    # Without an earlier row, the changes in the first row's hour are unknown.
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
        {name: _growth(_column(used, name), at, inside, number) for name in counters},
        {name: _filled(_column(used, name), at, inside, number) for name in gauges},
    )


def by_day(hours: Floats) -> Floats:
    """Return the hourly values of whole days, shape (days, 24).

    The last day ends with the last hour. Earlier hours that fill no day are omitted.
    """
    days = len(hours) // DAY_HOURS
    return hours[len(hours) - days * DAY_HOURS :].reshape(days, DAY_HOURS)


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> Floats:
    return np.array([row.get(name) or 0 for row in rows], np.float64)


def _growth(
    totals: Floats, at: npt.NDArray[np.int64], inside: npt.NDArray[np.bool_], hours: int
) -> Floats:
    steps = np.diff(totals, prepend=totals[:1])
    # If the job started with a new checkpoint, the counters restarted from zero.
    steps = np.where(steps < 0, totals, steps)
    return np.bincount(at[inside], steps[inside], hours).astype(np.float64)


def _filled(
    values: Floats, at: npt.NDArray[np.int64], inside: npt.NDArray[np.bool_], hours: int
) -> Floats:
    found = np.full(hours, np.nan)
    found[at[inside]] = values[inside]
    known = ~np.isnan(found)
    # Until the first row in the range, hours have the value of the last row before the
    # range.
    first = values[~inside & (at < 0)][-1:]
    before = np.maximum.accumulate(np.where(known, np.arange(hours), -1))
    start = first[0] if len(first) else 0.0
    return np.where(before >= 0, found[before], start)
