"""Computes when simulated futures reach a limit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sds_core.planning.hours import DAY_HOURS, DAY_MS, HOUR_MS, Floats


class Reached(NamedTuple):
    """When a limit is reached.

    Attributes:
        name: Figure that has the limit: ``epoch_messages``, ``message_bytes`` or
            ``filter_ids``.
        now: Value of the figure at the end of the history.
        at_ms: Time by which half of the simulated futures reach the limit, Unix ms.
            None if the time is after the last day of the forecast.
        earliest_ms, latest_ms: Start and end of the interval around `at_ms`, Unix ms.
            Each is None if it is after the last day of the forecast.
        note: At how many ids the filter rolls over, as text; empty if this is unknown,
            or if the figure is not ``filter_ids``. If the filter rolls over before the
            limit, all times are None.
    """

    name: str
    limit: float
    now: float
    at_ms: int | None
    earliest_ms: int | None
    latest_ms: int | None
    note: str = ""

    @property
    def is_reached(self) -> bool:
        """Whether the figure had reached its limit at the end of the history."""
        return self.now >= self.limit

    @property
    def headroom(self) -> float:
        """Unused share of the limit, in [0, 1]."""
        return max(0.0, 1 - self.now / self.limit)


def reached_by_level(paths: Floats, limit: float, now: float, begin_ms: int) -> Floats:
    """Return for each simulated future when a figure's daily maximum reaches a limit.

    The result has the shape (paths,). Each time is the start of the first day on which
    the maximum reaches the limit, Unix ms; infinity if the future has no such day.
    `paths` has the maximum on each day of each future, shape (days, paths). `now` is
    the maximum on the last day of the history. If `now` has reached the limit, all
    times are `begin_ms`, the start of the forecast's first day, Unix ms.
    """
    above = paths >= limit
    day = np.where(above.any(axis=0), above.argmax(axis=0), np.inf)
    return np.where(now >= limit, begin_ms, begin_ms + day * DAY_MS)


def reached_by_sum(
    paths: Floats, limit: float, now: float, begin_ms: int, profile: Floats
) -> Floats:
    """Return for each simulated future when a growing figure reaches a limit.

    Arguments and result are those of `reached_by_level`, with three differences:
    `paths` has the figure's growth on each day. `profile` has each hour's share of a
    day's growth, shape (24,). The times are exact to the hour, not only to the day.
    """
    levels = now + np.cumsum(paths, axis=0)
    above = levels >= limit
    day = above.argmax(axis=0)
    columns = np.arange(paths.shape[1])
    grown = np.maximum(paths[day, columns], 1e-9)
    missing = limit - (levels[day, columns] - grown)
    share = np.interp(
        missing / grown,
        np.concatenate([[0.0], np.cumsum(profile)]),
        np.arange(DAY_HOURS + 1) / DAY_HOURS,
    )
    times = begin_ms + (day + share) * DAY_MS
    times = np.where(above.any(axis=0), times, np.inf)
    return np.where(now >= limit, begin_ms, times)


def reached(
    name: str, limit: float, now: float, times: Floats, coverage: float
) -> Reached:
    """Return when a limit is reached: the median of `times`, and an interval around it.

    The results are rounded down to hours. `times` is the result of `reached_by_level`
    or `reached_by_sum`. `coverage` is the share of `times` inside the interval. For the
    other arguments, see `Reached`.
    """
    outside = (1 - coverage) / 2
    # The method must not interpolate between times, because some are infinite.
    quantiles = np.quantile(times, [outside, 0.5, 1 - outside], method="inverted_cdf")
    earliest, middle, latest = (
        int(one) // HOUR_MS * HOUR_MS if np.isfinite(one) else None for one in quantiles
    )
    return Reached(name, limit, now, middle, earliest, latest)
