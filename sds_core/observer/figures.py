"""Classes that declare the figures of a view.

One declaration contains everything that is published about a figure. Each kind of view
has one table of declarations (`figure_table.FigureTable`), in the module or package
``figures`` beside its views. Report, exporter, API, pages, charts, history and the
tables in ``docs/metrics.md`` and ``docs/history.md`` are generated from this table.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple

from sds_core.metrics import MetricKind, Sample
from sds_core.observer.verdict import Verdict


class Unit(enum.Enum):
    """Unit of the values of a figure."""

    COUNT = "count"
    """A whole number."""
    BYTES = "bytes"
    """A whole number of bytes."""
    DURATIONS = "durations"
    """A `Histogram` of durations in milliseconds; the metric is in seconds."""
    TIME = "time"
    """Event time in Unix milliseconds, or None; the metric is in seconds."""
    RATIO = "ratio"
    """A float in [0, 1], or None. The report and the history omit these figures."""
    NUMBER = "number"
    """A float, or None. The report and the history omit these figures."""
    WORD = "word"
    """A text. Texts are not exported, and have no sum over several views."""


class Series(NamedTuple):
    """The series of a metric that shows a figure; `labels` has its label values."""

    family: Family
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric of a view; see `sds_core.metrics.Metric`.

    Attributes:
        help: One sentence. If this is empty, the metric must have one figure and no
            labels, and the figure's help is used.
        samples: Function that returns all samples for totals; None if figures of the
            table provide the samples.
    """

    name: str
    kind: MetricKind
    help: str = ""
    labels: tuple[str, ...] = ()
    samples: Callable[[Any], Iterable[Sample]] | None = None
    summable: bool = True

    def of(self, *labels: str) -> Series:
        """Return the series with these label values."""
        return Series(self, labels)


def counter(name: str, text: str = "", *labels: str) -> Family:
    """Declare a counter; its name must end in ``_total``."""
    return Family(name, MetricKind.COUNTER, text, labels)


def gauge(name: str, text: str = "", *labels: str) -> Family:
    """Declare a gauge."""
    return Family(name, MetricKind.GAUGE, text, labels)


def histogram(name: str, text: str = "", *labels: str) -> Family:
    """Declare a histogram of durations; its name must end in ``_seconds``."""
    return Family(name, MetricKind.HISTOGRAM, text, labels)


def left_out_counter(name: str, text: str, limits: Iterable[enum.StrEnum]) -> Family:
    """Declare a counter of items that a view's limits dropped, by label `reason`."""
    reasons = tuple(limits)

    def samples(totals: Any) -> Iterable[Sample]:
        return [((one.value,), totals.left_out.get(one, 0)) for one in reasons]

    return Family(name, MetricKind.COUNTER, text, ("reason",), samples)


class Percentile(NamedTuple):
    """A percentile of a histogram on a page; for `column`, see `Figure.column`."""

    percent: int
    column: int = 0


class Line(NamedTuple):
    """The position of a figure in a chart.

    Attributes:
        chart: Key of the `ChartShape`.
        name: Name of the line or bar. A figure of `Unit.DURATIONS` needs no name,
            because each of its percentiles has its own line.
    """

    chart: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a view.

    Attributes:
        field: Attribute or property of the totals that has the value.
        help: One sentence about what the figure counts or measures.
        report: Positions in the report, as dotted paths; empty if the report lacks the
            figure. The first path is also the figure's name in the history.
        history: Whether the history has the figure although the report lacks it.
        detail: Key of the list of all durations in the report. The report has this list
            only with ``--report-detail``.
        group: Heading on the page above the figure; empty if the page lacks the figure.
        heading: Name on the page; for percentiles, the text before ``p95``.
        key: Name of the figure in URLs of pages, if it differs from `field`.
        grave: Whether any value other than zero is a fault.
        retracted: Field that counts those events of the figure that later proved wrong.
            Pages show the figure minus this field. Report, metrics and history show
            both values separately.
        column: Column in the table of all views, counted from 1; 0 if the figure has no
            column.
        percentiles: Percentiles on the page, for `Unit.DURATIONS`.
        line: Position in a chart. If set, the API has the figure's growth in each
            interval.
        growth_key: Key of the figure's growth in ``/api/v1/minutes``, if it differs
            from `field`.
    """

    field: str
    help: str
    unit: Unit = Unit.COUNT
    _: KW_ONLY
    report: tuple[str, ...] = ()
    history: bool = False
    detail: str = ""
    series: tuple[Series, ...] = ()
    group: str = ""
    heading: str = ""
    key: str = ""
    grave: bool = False
    retracted: str = ""
    column: int = 0
    percentiles: tuple[Percentile, ...] = ()
    line: Line | None = None
    growth_key: str = ""

    def read(self, totals: Any) -> Any:
        """Return the figure's value from totals; its type depends on `unit`."""
        return getattr(totals, self.field)

    def standing(self, totals: Any) -> Any:
        """Return the figure's value minus the retracted events."""
        if not self.retracted:
            return self.read(totals)
        # The difference may be negative, because an event may be counted in one
        # interval and retracted in a later one.
        return max(0, self.read(totals) - getattr(totals, self.retracted))


class Proportion(NamedTuple):
    """A part and its whole, as two counts."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        """The part divided by the whole; None if the whole is zero."""
        return self.part / self.whole if self.whole else None


class Objective(NamedTuple):
    """An SLO: a share that an operator wants to reach.

    Attributes:
        setting: Attribute of `ChannelSettings` that has the wanted share, in [0, 1].
    """

    heading: str
    setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share that is computed from counts: (part + retracted) / (part + rest).

    The counts are totals, or their growth in an interval. For attributes that are not
    listed here, see `Figure`.

    Attributes:
        part: Fields of the totals whose sum is the part.
        rest: Fields of the totals whose sum is the whole without the part.
        retracted: Fields that count the events in `rest` that later proved wrong, so
            these events belong to the part.
        more_is_better: Whether a larger share is better.
    """

    key: str
    help: str
    part: tuple[str, ...]
    rest: tuple[str, ...]
    retracted: tuple[str, ...] = ()
    group: str = ""
    heading: str = ""
    more_is_better: bool = True
    column: int = 0
    line: Line | None = None
    objective: Objective | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields from which the share is computed."""
        return self.part + self.rest + self.retracted

    def of_totals(self, totals: Any) -> Proportion:
        """The share, computed from totals."""
        return self.of_counts({name: getattr(totals, name) for name in self.fields})

    def of_counts(self, counts: Mapping[Any, int]) -> Proportion:
        """The share, computed from the count of each field."""
        part, rest, retracted = (
            sum(counts[name] for name in names)
            for names in (self.part, self.rest, self.retracted)
        )
        # A loss may be counted in one interval and retracted in a later one.
        return Proportion(part + min(retracted, rest), part + rest)


Entry = Figure | Share | Family
"""One declaration of a table."""


def verdict_entries(
    one: str, metric: str, since_metric: str, since_if: str = ""
) -> list[Entry]:
    """Declare the verdict of a view: a metric with the label `verdict`, and figures.

    `one` is the word for one view. `since_if` is a condition under which the verdict's
    start is known; the help of `since_metric` ends with it.
    """

    def samples(totals: Any) -> Iterable[Sample]:
        return [((each.value,), int(totals.verdict is each)) for each in Verdict]

    text = f"1 for the {one}'s current verdict, 0 for each other verdict."
    return [
        Family(metric, MetricKind.GAUGE, text, ("verdict",), samples, summable=False),
        Figure(
            "verdict",
            f"Health of the {one}, as one word.",
            Unit.WORD,
            report=("verdict",),
        ),
        Figure(
            "verdict_reason",
            "First reason, in the order of docs/figures.md, whose condition holds.",
            Unit.WORD,
            report=("reason",),
        ),
        Figure(
            "verdict_since_ms",
            f"Event time at which the {one}'s verdict began{since_if}.",
            Unit.TIME,
            series=(gauge(since_metric).of(),),
        ),
    ]


def under(group: str, *entries: Entry) -> list[Entry]:
    """Return the entries; if an entry on a page has no group, it gets `group`."""

    def belongs(entry: Figure | Share) -> bool:
        return bool(entry.heading or entry.key) and not entry.group

    return [
        entry
        if isinstance(entry, Family) or not belongs(entry)
        else replace(entry, group=group)
        for entry in entries
    ]


class Scale(enum.Enum):
    """How the values of a chart are drawn."""

    SECONDS = "seconds"
    """Lines on a logarithmic scale that covers all buckets of a histogram."""
    PERCENT = "percent"
    """Lines on a scale that ends at 100."""
    COUNT = "count"
    """Lines on a scale that begins at zero."""
    PARTS = "parts"
    """Stacked bars of counts that add up to a whole."""


class Limit(NamedTuple):
    """A straight line in a chart, for comparison with the values.

    Attributes:
        setting: Field of `sds_core.observer.settings.ObserverSettings` whose value the
            line shows, milliseconds.
    """

    name: str
    setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartShape:
    """A chart on a view's page: the figures and shares whose `line` names the chart.

    Attributes:
        note: One or two sentences that explain how to read the chart.
        scale: `SECONDS` for figures of `Unit.DURATIONS`, `PERCENT` for shares, `COUNT`
            or `PARTS` for counts.
        limit: A line for comparison, only with the scale `SECONDS`. If a share has an
            SLO, the chart also shows the SLO, even if `limit` is None.
    """

    key: str
    title: str
    note: str
    scale: Scale
    limit: Limit | None = None
