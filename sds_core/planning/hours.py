"""The figures of a view hour by hour, from rows of its history.

A row has absolute figures at the end of its minute. A minute without a change has no
row, so it is enough to have the last row of each hour.
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
"""A view without a row for so long fell silent: longer than a weekend. What came before
a silence says nothing about what comes after it."""

CLOCK_MS = DAY_MS
"""Minutes that are so much later than now are those of a clock that jumped."""

LEAST_DAYS = 14
"""Two of each day of the week: one alone cannot be told from chance."""

Floats = npt.NDArray[np.float64]


class Hours(NamedTuple):
    """What a view did in each hour.

    Attributes:
        end_ms: End of the last hour, Unix ms of event time.
        grown: Growth of each counter in each hour, shape (hours,).
        gauges: Value of each gauge in each hour, shape (hours,). An hour without a row
            has that of the hour before.
    """

    end_ms: int
    grown: Mapping[str, Floats]
    gauges: Mapping[str, Floats]


def hour_rows(
    rows: Iterable[Mapping[str, Any]], gauges: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the last row of each hour, with the greatest value of each gauge in it.

    Args:
        rows: Rows in order of their ``minute``.
        gauges: Names of fields; null values count as absent.
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
    """Return the end of the last hour that is whole in a history, Unix ms.

    Args:
        newest_ms: The newest minute of all views, Unix ms.
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
    """Return the hours of a view from its last silence to the end.

    Args:
        rows: A row for each hour in which a figure changed, in order of its ``minute``.
            A figure that is missing or null is 0.
        counters: Fields that grow; a smaller value means that counting began anew.
        gauges: Fields that go up and down.
        end_ms: End of the last hour, see `last_hour_ms`.
        now_ms: Wall time, Unix ms.
        least_days: Fewest whole days.

    Raises:
        ClockJumped: A row is more than `CLOCK_MS` later than now.
        Silent: There was no row for `SILENCE_MS` before the end.
        TooLittleHistory: Fewer than `least_days` whole days, or no hour, remain.
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
    # What happened in the first row's hour is not known: there is no row before it.
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
    """Return hours as whole days, shape (days, 24); the last day ends with the last.

    So every day has each hour of the day once, whenever the history ends.
    """
    days = len(hours) // DAY_HOURS
    return hours[len(hours) - days * DAY_HOURS :].reshape(days, DAY_HOURS)


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> Floats:
    return np.array([row.get(name) or 0 for row in rows], np.float64)


def _growth(
    totals: Floats, at: npt.NDArray[np.int64], inside: npt.NDArray[np.bool_], hours: int
) -> Floats:
    steps = np.diff(totals, prepend=totals[:1])
    # A new checkpoint counts from zero.
    steps = np.where(steps < 0, totals, steps)
    return np.bincount(at[inside], steps[inside], hours).astype(np.float64)


def _filled(
    values: Floats, at: npt.NDArray[np.int64], inside: npt.NDArray[np.bool_], hours: int
) -> Floats:
    found = np.full(hours, np.nan)
    found[at[inside]] = values[inside]
    known = ~np.isnan(found)
    # The hours before the first row have the value of the row before them.
    first = values[~inside & (at < 0)][-1:]
    before = np.maximum.accumulate(np.where(known, np.arange(hours), -1))
    start = first[0] if len(first) else 0.0
    return np.where(before >= 0, found[before], start)
