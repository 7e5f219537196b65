"""Forecasts as sentences and tables, for a report and for the page of forecasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from connectors.web.blocks import Table
from connectors.web.words import NOTHING
from sds_core.observer.figure_table import Names
from sds_core.planning.forecast import Forecast
from sds_core.planning.limits import Reached
from sds_core.planning.plan import Plan, limits_first
from sds_core.planning.words import HEADROOM, amount, figure_rows, interval, limit_name
from sds_core.text import counted, number, utc_time

_EXAMPLES = 5


class PlanBlocks(NamedTuple):
    """Creates sentences and tables about the forecasts of one kind of view.

    Attributes:
        called: Returns the display name of a view, in one line.
        link: Returns the address of a view; None if views are not linked.
    """

    plan: Plan
    names: Names
    called: Callable[[str], str]
    link: Callable[[str], str] | None = None

    def lead(self) -> Iterator[str]:
        """Yield sentences with the main results; nothing if no total is forecast."""
        total, plan = self.plan.total, self.plan
        if total is None:
            return
        many = counted(len(plan.views), self.names.one)
        share = f"{plan.interval} % probability"
        yield (
            f"The forecasts of {many} use {counted(total.history_days, 'day')} of "
            f"history until {utc_time(total.begin_ms)}. Each interval contains the "
            f"future value with {share}."
        )
        sent = total.figures["bytes"]
        change = ""
        if sent.past:
            percent = round(100 * (sent.week.mid / sent.past - 1))
            change = f", {percent:+} % relative to the last seven days"
        yield (
            f"Forecast for the next seven days: {amount('bytes', sent.week.mid)} per "
            f"day ({interval('bytes', sent.week)}){change}."
        )
        yield self._first_limit()

    def limits(self, most: int) -> Table:
        """Return a table of at most `most` limits, in order of their earliest times."""
        shown = limits_first(self.plan.views)
        rows = [self._limit_row(*entry) for entry in shown[:most]]
        note = (
            f"With {self.plan.interval} % probability, a limit is reached between the "
            "times in the columns Earliest and Latest. A dash stands for a time more "
            f"than {self.plan.days} days away. The bar shows how much of the limit is "
            "used now."
        )
        if len(shown) > most:
            note += f" The table omits {counted(len(shown) - most, 'limit')}."
        return Table(
            "Limits",
            (
                self.names.one.capitalize(), "Limit", "Now", "At", "Headroom",
                "Earliest, UTC", "Median, UTC", "Latest, UTC",
            ),
            rows,
            note,
            words=2,
            bars=[1 - limit.headroom for _, limit in shown[:most]],
            links=self._links([name for name, _ in shown[:most]]),
        )  # fmt: skip

    def views(self, shown: Sequence[str]) -> Table:
        """Return a table with a row for each view in `shown`, in the same order."""
        views = self.plan.views
        return Table(
            self.names.many.capitalize(),
            (
                self.names.one.capitalize(), "Bytes a day, last 7 days", "Next 7 days",
                "Interval", "Messages a day, next 7 days", "Least epoch headroom",
            ),
            [_view_row(self.called(name), views[name]) for name in shown],
            "Each figure is a seven-day mean. Rows with the most bytes are first.",
            links=self._links(shown),
        )  # fmt: skip

    def without(self) -> Table | None:
        """Return a table of `Plan.without`, with a row for each reason.

        If `Plan.without` is empty, return None.
        """
        by_reason: dict[str, list[str]] = {}
        for name, why in self.plan.without.items():
            by_reason.setdefault(why, []).append(self.called(name))
        if not by_reason:
            return None
        rows = [
            (why, number(len(names)), _listed(names))
            for why, names in by_reason.items()
        ]
        headings = ("Reason", "Number", self.names.many.capitalize())
        return Table("Without a forecast", headings, rows, words=3)

    def by_bytes(self) -> list[str]:
        """Return the names of the views in descending order of forecast bytes.

        The forecast is the median for the next seven days.
        """
        views = self.plan.views
        return sorted(views, key=lambda name: -views[name].figures["bytes"].week.mid)

    def _first_limit(self) -> str:
        first = next(iter(limits_first(self.plan.views)), None)
        if first is None:
            return f"No limit is known for {self.names.many}."
        name, limit = first
        what = f"{limit_name(limit.name)} of {self.called(name)}"
        if limit.is_reached:
            return f"Reached: {what}."
        if limit.earliest_ms is None:
            return f"No limit is reached within {self.plan.days} days."
        return f"First limit: {what}. Earliest time: {utc_time(limit.earliest_ms)}."

    def _limit_row(self, name: str, limit: Reached) -> tuple[str, ...]:
        what = limit_name(limit.name)
        times = (limit.earliest_ms, limit.at_ms, limit.latest_ms)
        return (
            self.called(name),
            f"{what}; {limit.note}" if limit.note else what,
            amount(limit.name, limit.now),
            amount(limit.name, limit.limit),
            f"{100 * limit.headroom:.0f} %",
            *(["reached"] * 3 if limit.is_reached else map(_time, times)),
        )

    def _links(self, names: Sequence[str]) -> list[str]:
        return [] if self.link is None else [self.link(name) for name in names]


def figures_table(forecast: Forecast, plan: Plan) -> Table:
    """Return a table of all figures of a forecast."""
    share = f"{plan.interval} % interval"
    headings = ("A day, mean", "Last 7 days", "Next 7 days", share)
    return Table("Figures", headings, figure_rows(forecast.figures))


def _view_row(name: str, forecast: Forecast) -> tuple[str, ...]:
    figures: Mapping[str, object] = forecast.figures
    sent, messages = forecast.figures["bytes"], forecast.figures["messages"]
    left = forecast.figures[HEADROOM].week.low if HEADROOM in figures else None
    return (
        name,
        amount("bytes", sent.past),
        amount("bytes", sent.week.mid),
        interval("bytes", sent.week),
        amount("messages", messages.week.mid),
        NOTHING if left is None else amount(HEADROOM, left),
    )


def _time(at_ms: int | None) -> str:
    return NOTHING if at_ms is None else utc_time(at_ms).removesuffix(":00 UTC")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _EXAMPLES
    text = ", ".join(names[:_EXAMPLES])
    return f"{text} and {number(more)} more" if more > 0 else text
