"""The figures of views in the last hour, and a small trend chart of each view.

The "last hour" starts at a multiple of 5 minutes, so it lasts 60 to 65 minutes. Until
the next multiple, its start stays the same, so figures change only if records arrive.
The trends of all views have the same steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from markupsafe import Markup

from connectors.web import words
from connectors.web.sources import StoredViews
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.figures import Figure, Unit
from sds_core.observer.growth import GrowthSince, Recorded
from sds_core.observer.view_totals import ViewTotals

STEP_MS = 300_000

_HOUR_MS = 3_600_000
_STEP, _HEIGHT = 5, 16


class Lately(NamedTuple):
    """The figures of a view, counted from a point in time.

    Attributes:
        figures: `GrowthSince` that point in time, or the view's totals if all records
            count; None if the figures at that point in time are unknown.
        since_ms: The point in time, Unix ms of event time; None if it is unknown.
    """

    figures: Any
    since_ms: int | None


@dataclass(frozen=True, slots=True)
class Trend:
    """A view's growth in each step of the last hour, as bars and in words."""

    picture: Markup
    text: str


class LastHour:
    """Finds how the figures of views grew in the hour before `clock_ms`.

    Attributes:
        begin_ms: Start of the hour, Unix ms of event time.
    """

    def __init__(
        self, stored: StoredViews | None, table: FigureTable[Any], clock_ms: int
    ) -> None:
        self._stored = stored
        self._table = table
        self._clock_ms = clock_ms
        self.begin_ms = (clock_ms - _HOUR_MS) // STEP_MS * STEP_MS

    @cached_property
    def _before(self) -> Mapping[str, Recorded]:
        return {} if self._stored is None else self._stored.find_recent(self.begin_ms)

    def trends(self, views: Mapping[str, ViewTotals]) -> dict[str, Trend]:
        """Return the trend of each of the given views, by the view's name.

        If no data is stored, or the views have no count to draw, the result is empty.
        """
        figure = next(
            (
                one
                for one in self._table.figures
                if one.unit is Unit.COUNT
                and one.column
                and one.field in self._table.counted
            ),
            None,
        )
        if figure is None or self._stored is None:
            return {}
        # The current step is incomplete. `_trend` computes its growth from the totals.
        until_ms = self._clock_ms // STEP_MS * STEP_MS
        steps = self._stored.find_steps(list(views), self.begin_ms, until_ms, STEP_MS)
        return {
            name: self._trend(
                figure, totals, self._before.get(name), steps.get(name, ())
            )
            for name, totals in views.items()
        }

    def _is_new(self, totals: ViewTotals) -> bool:
        first_ms = totals.first_event_ms
        return first_ms is None or first_ms >= self.begin_ms

    def lately(self, name: str, totals: ViewTotals) -> Lately:
        """Return the figures of a view in the hour.

        The result is not cached, because thousands of cached results would make the
        garbage collector visit the totals of all views.
        """
        if self._is_new(totals):
            return Lately(GrowthSince(self._table, totals, None), totals.first_event_ms)
        before = self._before.get(name)
        if before is None:
            return Lately(None, None)
        return Lately(
            GrowthSince(self._table, totals, before.values),
            max(before.end_ms, self.begin_ms),
        )

    def _trend(
        self,
        figure: Figure,
        totals: ViewTotals,
        before: Recorded | None,
        steps: Sequence[Recorded],
    ) -> Trend:
        at = self._table.counted[figure.field]
        grown = [0] * ((self._clock_ms - self.begin_ms - 1) // STEP_MS + 1)
        known: Any = None if before is None else before.values[at]
        begin_ms = self.begin_ms
        if self._is_new(totals):
            # If the view was forgotten and has returned, ignore the figures from before
            # it was forgotten.
            known, begin_ms = 0, max(begin_ms, totals.first_event_ms or 0)
        counts = [(one.end_ms, one.values[at]) for one in steps]
        for end_ms, count in (*counts, (self._clock_ms, figure.read(totals))):
            if end_ms <= begin_ms:
                continue
            if known is not None:
                grown[(end_ms - self.begin_ms - 1) // STEP_MS] += count - known
            known = count
        name = f"{figure.heading} in steps of {words.duration(STEP_MS)}"
        return Trend(_bars(grown), f"{name}: {', '.join(map(words.number, grown))}")


def _bars(values: Sequence[int]) -> Markup:
    most = max(values, default=0)
    heights = [-(-value * _HEIGHT // most) if value else 0 for value in values]
    path = "".join(
        f"M{_STEP * n + _STEP / 2:g} {_HEIGHT}v-{height}"
        for n, height in enumerate(heights)
        if height
    )
    # All inserted values are numbers, so nothing needs escaping.
    return Markup(  # noqa: S704
        f'<svg class="bars" viewBox="0 0 {_STEP * len(values)} {_HEIGHT}" '
        f'aria-hidden="true"><path d="{path}"/></svg>'
    )
