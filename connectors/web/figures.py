"""Creates the figures on the pages from a `FigureTable`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from connectors.web import words
from sds_core.observer.figure_table import FigureTable, PageEntry
from sds_core.observer.figures import Figure, Percentile, Share, Unit
from sds_core.observer.histogram import BUCKETS_MS
from sds_core.text import byte_size


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A figure that pages show for every view.

    Attributes:
        key: Name of the figure in page addresses.
        text: Returns the value as text, from the totals of a view.
        value: Returns the number by which views are sorted, from the totals of a view;
            None if nothing was measured.
        grave: Whether every value other than zero is a fault.
        column: Position of the figure's column in the table of all views; 0 if it has
            no column.
    """

    key: str
    heading: str
    meaning: str
    text: Callable[[Any], str]
    value: Callable[[Any], float | None]
    grave: bool = False
    least_first: bool = False
    column: int = 0


class Group(NamedTuple):
    """Figures under one heading."""

    title: str
    figures: list[PageFigure]


def page_groups(table: FigureTable[Any]) -> list[Group]:
    """Return all figures that a view's own page shows, in groups."""
    return [
        Group(title, [_page_figure(one) for one in table.page_entries(title)])
        for title in table.groups
    ]


def column_groups(table: FigureTable[Any]) -> list[Group]:
    """Return the columns of the table of all views: in groups, in column order."""
    groups = []
    for title, figures in page_groups(table):
        columns = sorted((f for f in figures if f.column), key=lambda f: f.column)
        if columns:
            groups.append(Group(title, columns))
    return groups


def _page_figure(entry: PageEntry) -> PageFigure:
    match entry:
        case Share():
            return _share(entry)
        case Figure():
            return _value(entry)
        case (figure, percentile):
            return _percentile(figure, percentile)


def _share(share: Share) -> PageFigure:
    return PageFigure(
        share.key,
        share.heading,
        share.help,
        lambda totals: words.share(*share.of_totals(totals), decimals=1),
        lambda totals: share.of_totals(totals).value,
        least_first=share.more_is_better,
        column=share.column,
    )


def _value(figure: Figure) -> PageFigure:
    text = _TEXTS[figure.unit]
    meaning = figure.help
    if figure.retracted:
        meaning = f"{meaning} Messages that arrive late reduce this number."
    return PageFigure(
        figure.key or figure.field,
        figure.heading,
        meaning,
        lambda totals: text(figure.standing(totals)),
        figure.standing,
        grave=figure.grave,
        column=figure.column,
    )


def _percentile(figure: Figure, percentile: Percentile) -> PageFigure:
    name = f"p{percentile.percent}"

    def value(totals: Any) -> float | None:
        histogram = figure.read(totals)
        if not histogram.count:
            return None
        # The last bucket has no upper bound. If the percentile is in this bucket, sort
        # the view by a value above all bounds.
        return histogram.percentile_ms(percentile.percent) or BUCKETS_MS[-1] + 1

    return PageFigure(
        f"{figure.key or figure.field}_{name}",
        f"{figure.heading} {name}".strip(),
        f"{figure.help[:-1]}, {percentile.percent}th percentile.",
        lambda totals: words.percentile(figure.read(totals), percentile.percent),
        value,
        column=percentile.column,
    )


_TEXTS: dict[Unit, Callable[[Any], str]] = {
    Unit.COUNT: words.number,
    Unit.BYTES: byte_size,
    Unit.TIME: words.utc,
    Unit.RATIO: words.small_ratio,
    Unit.NUMBER: words.rounded,
}
