"""The table of all figures of one kind of view.

Metrics, report and pages are generated from this table.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from sds_core.metrics import Metric, MetricKind, Sample, in_seconds
from sds_core.observer.figures import (
    ChartShape,
    Entry,
    Family,
    Figure,
    Percentile,
    Share,
    Unit,
)
from sds_core.observer.histogram import BUCKETS_MS, Histogram, exact_percentiles
from sds_core.observer.summing import sum_totals

Totals = TypeVar("Totals", bound=msgspec.Struct)

PageEntry = tuple[Figure, Percentile] | Figure | Share
"""One entry of a page: a percentile of a histogram, another figure, or a share."""


class ColumnType(enum.Enum):
    """Types of columns in the history."""

    INTEGER = "integer"
    TEXT = "text"
    COUNTS = "counts"
    """A list with the count of each bucket of a histogram."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the history; `read` returns its value from a view's totals."""

    name: str
    type: ColumnType
    help: str
    read: Callable[[Any], int | str | list[int] | None]


class Names(NamedTuple):
    """The words that pages, metrics and history use for the views of a kind.

    Attributes:
        label: Metric label whose value is a view's name.
        incidents: Name of the history's table of incidents; if this is empty, the name
            is ``<one>_incidents``.
    """

    label: str
    one: str
    many: str
    incidents: str = ""


class FigureError(ValueError):
    """A declaration in a table is wrong."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        super().__init__(f"{name}: {why}")


class FigureTable(Generic[Totals]):
    """All figures of a kind of view.

    Attributes:
        grown: Figures of which charts and the API show the growth in time intervals.
        counted: For each counted field of the totals, its index in the result of
            `growth.counted_values`. Counted fields are those of the figures in `grown`,
            and those from which the columns of the table of all views are computed.
            Gauges in columns are not counted.
        metrics: Metrics of each view, in the order in which they are exported.
        columns: Columns of the history, in order.

    Args:
        entries: Figures, shares, and metrics whose samples are not figures. Metrics are
            exported in the order in which they first appear in `entries`.
        report_order: Prefixes of the paths in `Figure.report`. The report has the paths
            in the order of these prefixes. Paths without such a prefix come last, in
            the order of `entries`.

    Raises:
        FigureError: A declaration contradicts itself, another declaration, or the type
            of the totals.
    """

    def __init__(
        self,
        totals: type[Totals],
        names: Names,
        entries: Iterable[Entry],
        *,
        groups: Sequence[str] = (),
        charts: Sequence[ChartShape] = (),
        report_order: Sequence[str] = (),
    ) -> None:
        self.totals = totals
        self.names = names
        self.entries = tuple(entries)
        self.groups = tuple(groups)
        self.charts = tuple(charts)
        self.report_order = tuple(report_order)
        self.figures = tuple(e for e in self.entries if isinstance(e, Figure))
        self.shares = tuple(e for e in self.entries if isinstance(e, Share))
        self.grown = self._grown()
        self.counted = self._counted()
        self._check()
        self.metrics: tuple[Metric[Totals], ...] = tuple(self._made_metrics())
        self._paths: list[tuple[tuple[str, ...], Figure]] = sorted(
            (
                (tuple(path.split(".")), one)
                for one in self.figures
                for path in one.report
            ),
            key=lambda found: self._place(found[0]),
        )
        self.columns = tuple(_columns(self._paths, self.figures))

    def sum(self, views: Iterable[Totals]) -> Totals:
        """Return the sum of the totals of several views; see `sum_totals`."""
        return sum_totals(self.totals, views)

    def report(
        self,
        totals: Totals,
        *,
        exact: Mapping[str, Sequence[int]] = MappingProxyType({}),
        is_sum: bool = False,
    ) -> dict[str, Any]:
        """Return a view's figures as a JSON object; times are in milliseconds.

        `exact` contains all durations of some histograms, in milliseconds, by field.
        The percentiles of these histograms are exact; the percentiles of other
        histograms are bounds of buckets.

        If the totals are sums over several views (`is_sum`), texts such as the verdict
        are omitted.
        """
        report: dict[str, Any] = {}
        for path, figure in self._paths:
            if is_sum and figure.unit is Unit.WORD:
                continue
            value = _plain(figure.read(totals))
            if figure.field in exact:
                value |= exact_percentiles(exact[figure.field])
            place = report
            for parent in path[:-1]:
                place = place.setdefault(parent, {})
            place[path[-1]] = value
        return report

    def row(self, totals: Totals) -> dict[str, Any]:
        """Return a view's row in the history: each column's value, by column name."""
        return {column.name: column.read(totals) for column in self.columns}

    @property
    def detailed(self) -> Figure | None:
        """The figure that has `detail`; None if no figure has it."""
        return next((one for one in self.figures if one.detail), None)

    def page_entries(self, group: str) -> list[PageEntry]:
        """Return the entries that a page shows under the heading `group`, in order."""
        found: list[PageEntry] = []
        for entry in self.entries:
            if isinstance(entry, Family) or entry.group != group:
                continue
            if isinstance(entry, Figure) and entry.unit is Unit.DURATIONS:
                found += [(entry, percentile) for percentile in entry.percentiles]
            else:
                found.append(entry)
        return found

    def in_chart(self, chart: str) -> list[Figure | Share]:
        """Return the figures and shares that a chart shows, in order."""
        return [
            entry
            for entry in self.entries
            if not isinstance(entry, Family)
            and entry.line is not None
            and entry.line.chart == chart
        ]

    def _grown(self) -> tuple[Figure, ...]:
        """Return the figures in charts, and those from which charts compute shares."""
        of_shares = set(
            chain.from_iterable(one.fields for one in self.shares if one.line)
        )
        return tuple(one for one in self.figures if one.line or one.field in of_shares)

    def _counted(self) -> dict[str, int]:
        """Return the value of the attribute `counted`.

        Gauges in columns are omitted, because they may also decrease.
        """
        in_columns = [
            one.field for one in self.figures if _has_column(one) and _only_grows(one)
        ]
        of_shares = [one.fields for one in self.shares if one.column]
        retracted = (one.retracted for one in self.figures if _has_column(one))
        found = chain(
            (one.field for one in self.grown),
            in_columns,
            chain(*of_shares),
            filter(None, retracted),
        )
        return {field: place for place, field in enumerate(dict.fromkeys(found))}

    def column_of(self, figure: Figure) -> str:
        """Return the name of a figure's column in the history."""
        name = figure.report[0].replace(".", "_") if figure.report else figure.field
        return f"{name}_buckets" if figure.unit is Unit.DURATIONS else name

    def _place(self, path: tuple[str, ...]) -> int:
        """Return the sort key of a path in the report.

        This is the index in `report_order` of the longest prefix that the path has. If
        the path has no prefix there, it is the length of `report_order`.
        """
        for length in range(len(path), 0, -1):
            begin = ".".join(path[:length])
            if begin in self.report_order:
                return self.report_order.index(begin)
        return len(self.report_order)

    def _made_metrics(self) -> Iterator[Metric[Totals]]:
        families: dict[str, Family] = {}
        for entry in self.entries:
            for family in _families(entry):
                if families.setdefault(family.name, family) != family:
                    raise FigureError(family.name, "is declared twice")
        for family in families.values():
            parts = [
                (series.labels, figure)
                for figure in self.figures
                for series in figure.series
                if series.family == family
            ]
            yield _metric(family, parts)

    def _check(self) -> None:
        names = [*(one.field for one in self.figures), *(s.key for s in self.shares)]
        for name, times in Counter(names).items():
            if times > 1:
                raise FigureError(name, "is declared twice")
        charts = {chart.key for chart in self.charts}
        for entry in self.entries:
            if isinstance(entry, Family):
                continue
            name = entry.field if isinstance(entry, Figure) else entry.key
            fields = _fields_of(entry)
            if missing := [one for one in fields if not hasattr(self.totals, one)]:
                raise FigureError(name, f"the totals have no attribute {missing[0]}")
            if entry.group and entry.group not in self.groups:
                raise FigureError(name, f"no group has the name {entry.group}")
            if entry.line is not None and entry.line.chart not in charts:
                raise FigureError(name, f"no chart has the name {entry.line.chart}")
            if isinstance(entry, Figure):
                _check_figure(entry)
        followed = {one.field for one in self.figures if one.report or one.history}
        for figure in self.grown:
            if figure.field not in followed:
                raise FigureError(
                    figure.field,
                    "a figure that a chart shows must be in the report or the history",
                )


def _fields_of(entry: Figure | Share) -> tuple[str, ...]:
    if isinstance(entry, Share):
        return entry.fields
    return tuple(filter(None, (entry.field, entry.retracted)))


def _has_column(figure: Figure) -> bool:
    return bool(figure.column) or any(one.column for one in figure.percentiles)


def _only_grows(figure: Figure) -> bool:
    return any(one.family.kind is not MetricKind.GAUGE for one in figure.series)


def _check_figure(figure: Figure) -> None:
    is_float = figure.unit in (Unit.RATIO, Unit.NUMBER)
    if is_float and (figure.report or figure.history):
        problem = "a figure of unit RATIO or NUMBER cannot be in the report or history"
        raise FigureError(figure.field, problem)
    if figure.unit is Unit.WORD and (figure.series or figure.group):
        problem = "a figure of unit WORD cannot be in a metric or on a page"
        raise FigureError(figure.field, problem)
    for series in figure.series:
        if len(series.labels) != len(series.family.labels):
            raise FigureError(figure.field, f"wrong labels for {series.family.name}")


def _families(entry: Entry) -> list[Family]:
    match entry:
        case Family():
            return [entry]
        case Figure():
            return [series.family for series in entry.series]
        case Share():
            return []


def _metric(
    family: Family, parts: Sequence[tuple[tuple[str, ...], Figure]]
) -> Metric[Any]:
    """Return the metric that a `Family` declares.

    `parts` has a pair for each series: the label values, and the figure.
    """

    def samples(totals: Any) -> Iterator[Sample]:
        for labels, figure in parts:
            value = figure.read(totals)
            if figure.unit is Unit.TIME:
                value = in_seconds(value)
            if value is not None:
                yield labels, value

    text = family.help
    if not text:
        if len(parts) != 1:
            raise FigureError(
                family.name, "needs its own help text, because it has several series"
            )
        text = parts[0][1].help
    return Metric(
        family.name,
        family.kind,
        text,
        family.labels,
        family.samples or samples,
        family.summable,
    )


def _columns(
    paths: Iterable[tuple[tuple[str, ...], Figure]], figures: Iterable[Figure]
) -> Iterator[Column]:
    """Yield the history's columns.

    The first columns are the figures in the report. Then come the buckets of their
    histograms, then the figures that only the history has.
    """
    bounds = ", ".join(map(str, BUCKETS_MS))
    buckets: list[Column] = []
    names: dict[str, str] = {}
    for path, figure in paths:
        name = "_".join(path)
        text = figure.help
        if figure.field in names:
            text = f"{text[:-1]}: the same as `{names[figure.field]}`."
        names.setdefault(figure.field, name)
        if figure.unit is not Unit.DURATIONS:
            yield _column(name, text, figure)
            continue
        begin = text[:-1]
        for part, attribute, meaning in (
            ("count", "count", "number of durations"),
            ("sum", "sum_ms", "sum of the durations in milliseconds"),
        ):
            yield Column(
                f"{name}_{part}",
                ColumnType.INTEGER,
                f"{begin}: {meaning}.",
                attrgetter(f"{figure.field}.{attribute}"),
            )
        buckets.append(
            Column(
                f"{name}_buckets",
                ColumnType.COUNTS,
                f"{begin}: number of durations in each bucket, not cumulative; upper "
                f"bounds in milliseconds, each inclusive: {bounds}; the last bucket "
                "has no bound.",
                attrgetter(f"{figure.field}.counts"),
            )
        )
    yield from buckets
    for figure in figures:
        if figure.history and not figure.report:
            yield _column(figure.field, figure.help, figure)


def _column(name: str, text: str, figure: Figure) -> Column:
    type_ = ColumnType.TEXT if figure.unit is Unit.WORD else ColumnType.INTEGER
    return Column(name, type_, text, lambda totals: _plain(figure.read(totals)))


def _plain(value: Any) -> Any:
    match value:
        case Histogram():
            return value.summary()
        case enum.Enum():
            return value.value
        case _:
            return value
