"""Computes how much a view's figures have grown since an earlier moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sds_core.observer.figure_table import FigureTable
from sds_core.observer.histogram import Histogram

CountedValue = int | list[int]
"""A count; for a histogram, the list of the counts of its 13 buckets."""


class Recorded(NamedTuple):
    """A view's counted figures at the end of a minute.

    Attributes:
        end_ms: End of the minute, Unix ms of event time.
        values: Result of `counted_values` at the end of the minute.
    """

    end_ms: int
    values: Sequence[CountedValue]


def counted_values(table: FigureTable[Any], totals: Any) -> list[CountedValue]:
    """Return a view's values of the fields `FigureTable.counted`, in their order."""
    values = (getattr(totals, field) for field in table.counted)
    return [one.counts if isinstance(one, Histogram) else one for one in values]


class GrowthSince:
    """Totals in which a counted figure has its growth since an earlier moment as value.

    Gauges, times and words have their current values. The growth of a figure is
    computed only when the figure is read, because a sort of views by one figure reads
    no other figures. The `sum_ms` of a histogram is not meaningful here.

    Args:
        before: Result of `counted_values` at the earlier moment; None if all values
            were zero.
    """

    __slots__ = ("_before", "_places", "_totals")

    def __init__(
        self,
        table: FigureTable[Any],
        totals: Any,
        before: Sequence[CountedValue] | None,
    ) -> None:
        self._totals = totals
        self._places = table.counted
        self._before = before

    def __getattr__(self, name: str) -> Any:
        """Return the growth of a counted figure, or the value of another attribute."""
        now, place = getattr(self._totals, name), self._places.get(name)
        if place is None or self._before is None:
            return now
        before = self._before[place]
        if isinstance(before, int):
            return now - before
        return Histogram(
            [mine - theirs for mine, theirs in zip(now.counts, before, strict=True)]
        )
