"""Computes from per-minute aggregates how a view's figures grow in each interval.

A row of the history has the view's totals at the end of its minute. A minute in which
nothing changed has no row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from connectors.history.schema import Row
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.figures import Unit
from sds_core.observer.histogram import BUCKETS_MS, Histogram
from sds_core.observer.minutes import MINUTE_MS

_HOUR_MS = 60 * MINUTE_MS

Hours = Literal[1, 3, 6, 24]

HOURS: Mapping[Hours, int] = MappingProxyType(
    {1: MINUTE_MS, 3: 3 * MINUTE_MS, 6: 5 * MINUTE_MS, 24: 15 * MINUTE_MS}
)
"""Hours that a trend covers -> length of its intervals, milliseconds."""

DEFAULT_HOURS: Hours = 3

FindMinutes = Callable[[str, int, int, Collection[str]], Sequence[Row]]


class Growth(Counter[str | tuple[str, int]]):
    """For each figure, the amount by which the figure grew in an interval.

    A key is the name of a field of the totals. A histogram of durations has a key for
    each bucket: a pair of the field's name and the bucket's number.
    """

    @classmethod
    def of_row(cls, table: FigureTable[Any], row: Mapping[str, Any]) -> Growth:
        """Return the figures in a row of the history; they count as growth from zero.

        If the row lacks a figure, the figure is zero. A version of the monitor that did
        not know the figure may have written the row.
        """
        growth = cls()
        for figure in table.grown:
            value = row.get(table.column_of(figure))
            if value is None:
                continue
            if figure.unit is Unit.DURATIONS:
                growth.update({(figure.field, n): one for n, one in enumerate(value)})
            else:
                growth[figure.field] = value
        return growth

    def histogram(self, field: str) -> Histogram:
        """Return the growth of a histogram of durations, without the durations' sum."""
        return Histogram([self[field, n] for n in range(len(BUCKETS_MS) + 1)])


@dataclass(frozen=True, slots=True)
class Trend:
    """The growth of a view's figures in consecutive intervals.

    Attributes:
        begin_ms: Start of the first interval, event time, Unix ms.
        growth: Growth in each interval; None if the figures at the interval's start are
            unknown.
    """

    begin_ms: int
    step_ms: int
    growth: Sequence[Growth | None]

    @property
    def begins_ms(self) -> range:
        """Start of each interval, Unix ms."""
        end_ms = self.begin_ms + len(self.growth) * self.step_ms
        return range(self.begin_ms, end_ms, self.step_ms)

    @property
    def total(self) -> Growth:
        """The sum of all known growth."""
        total = Growth()
        for one in self.growth:
            total.update(one)
        return total


def recent_trend(
    table: FigureTable[Any],
    find_minutes: FindMinutes,
    view: str,
    *,
    first_event_ms: int,
    clock_ms: int,
    hours: Hours,
) -> Trend:
    """Return a view's trend in the last `hours`; the last interval contains `clock_ms`.

    If the figures at the start of these hours are not known, the trend begins with the
    first known figures. It then has fewer intervals, or shorter ones.
    `first_event_ms` is the event time of the view's first event on this checkpoint,
    Unix ms. Rows of the history before this time belong to another checkpoint.

    Raises:
        NoHistory: The history does not exist.
        DamagedHistory: A file of the history cannot be read.
    """
    step_ms = HOURS[hours]
    end_ms = (clock_ms // step_ms + 1) * step_ms
    begin_ms = end_ms - hours * _HOUR_MS
    fields = [table.column_of(figure) for figure in table.grown]
    rows = find_minutes(view, begin_ms - step_ms, end_ms, fields)
    earlier = [row for row in rows if row["minute"] < begin_ms]
    rows = rows[len(earlier) :]
    if rows and not earlier:
        # The interval before the trend has no row, because the view was quiet or is
        # new. Search the 24 hours before the trend: the search reads files of at most
        # one further day.
        before_ms = begin_ms - 24 * _HOUR_MS
        earlier = list(find_minutes(view, before_ms, begin_ms, fields))
    before = None
    if earlier:
        before = Growth.of_row(table, earlier[-1])
    elif begin_ms <= first_event_ms and (
        not rows or first_event_ms < rows[0]["minute"] + MINUTE_MS
    ):
        before = Growth()
        begin_ms, end_ms, step_ms = _span(first_event_ms, clock_ms, hours)
    elif rows:
        begin_ms, end_ms, step_ms = _span(rows[0]["minute"], clock_ms, hours)
    first_ms = first_event_ms // MINUTE_MS * MINUTE_MS
    has_other = any(row["minute"] < first_ms for row in (*earlier[-1:], *rows[:1]))
    return trend(
        table,
        rows,
        before,
        begin_ms=begin_ms,
        end_ms=end_ms,
        step_ms=step_ms,
        new_from_ms=first_ms if has_other else None,
    )


def _span(known_ms: int, clock_ms: int, hours: int) -> tuple[int, int, int]:
    # Return start and end of the trend, Unix ms, and the length of an interval, ms.
    step_ms = next(
        step_ms
        for longest, step_ms in HOURS.items()
        if longest == hours or clock_ms - known_ms < longest * _HOUR_MS
    )
    begin_ms = known_ms // step_ms * step_ms
    return begin_ms, (clock_ms // step_ms + 1) * step_ms, step_ms


def trend(
    table: FigureTable[Any],
    rows: Sequence[Row],
    before: Growth | None,
    *,
    begin_ms: int,
    end_ms: int,
    step_ms: int,
    new_from_ms: int | None = None,
) -> Trend:
    """Return the trend in the range [begin_ms, end_ms), Unix ms.

    `rows` are the rows of minutes that begin in the range, oldest first. The range's
    length is a multiple of `step_ms`. `before` has the figures before the first row;
    None if they are unknown. If a new checkpoint began after the first known figures,
    `new_from_ms` is the start of its first minute.
    """
    growth: list[Growth | None] = [Growth() for _ in range(begin_ms, end_ms, step_ms)]
    for row in rows:
        index = (row["minute"] - begin_ms) // step_ms
        totals = Growth.of_row(table, row)
        known = growth[index]
        if new_from_ms is not None and row["minute"] >= new_from_ms:
            before, new_from_ms = Growth(), None
        if before is None or known is None:
            growth[index] = None
        else:
            known.update(totals)
            # On a new checkpoint, figures count from zero. If a figure is smaller than
            # before, the checkpoint is new, and the row's figures are the growth. This
            # finds earlier changes of the checkpoint, whose times are unknown.
            if all(totals[key] >= count for key, count in before.items()):
                known.subtract(before)
        before = totals
    return Trend(begin_ms, step_ms, growth)
