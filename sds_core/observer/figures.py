"""Classes with which the figures of views are declared.

One declaration contains everything that is published about a figure. Each kind of view
has one table of declarations (`figure_table.FigureTable`), in the module or package
``figures`` beside its views. Report, exporter, API, pages, charts, history and the
tables in ``docs/metrics.md`` and ``docs/history.md`` are generated from these
declarations.
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
    """A float in [0, 1], or None. Report and history omit figures of this unit."""
    NUMBER = "number"
    """A float, or None. Report and history omit figures of this unit."""
    WORD = "word"
    """A text. Metrics and sums over several views omit figures of this unit."""


class Series(NamedTuple):
    """The series that exports a figure: its metric, and the values of its labels."""

    family: Family
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric of a view; see `sds_core.metrics.Metric`.

    Attributes:
        help: One sentence. If empty, the metric has the help of its figure; it must
            then have exactly one figure.
        samples: Function that returns all samples of the metric from a view's totals;
            None if the samples are the values of figures in the table.
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
    """Declare a counter of the items that a view dropped because of its limits.

    The label `reason` states which limit was exceeded.
    """
    reasons = tuple(limits)

    def samples(totals: Any) -> Iterable[Sample]:
        return [((one.value,), totals.left_out.get(one, 0)) for one in reasons]

    return Family(name, MetricKind.COUNTER, text, ("reason",), samples)


class Percentile(NamedTuple):
    """A percentile that a page shows of a histogram; for `column`, see `Figure`."""

    percent: int
    column: int = 0


class Line(NamedTuple):
    """The line or bar that shows a figure or a share in a chart.

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
        field: Name of the attribute or property of the totals that has the figure's
            value.
        help: One sentence about what the figure counts or measures.
        report: Positions in the report, as dotted paths; empty if the report lacks the
            figure. The first path, with underscores for dots, is also the figure's name
            in the history.
        history: Whether the history has the figure although the report lacks it.
        detail: Key under which the report has the list of all durations, each with its
            message id. The report has this list only with ``--report-detail``. Empty if
            the report never has such a list.
        group: Heading on the page above the figure; empty if the page lacks the figure.
        heading: Name of the figure on the page; for percentiles, the text before the
            percentile, such as ``p95``.
        key: Name of the figure in URLs of pages, if it differs from `field`.
        grave: Whether any value other than zero is a fault.
        retracted: Field of the totals that counts how many events of the figure later
            proved wrong. Pages show the figure minus this count. Report, metrics
            and history show both values separately.
        column: Column in the table of all views, counted from 1; 0 if the figure has no
            column.
        percentiles: Percentiles that the page shows, if `unit` is `Unit.DURATIONS`.
        line: The figure's line or bar in a chart. If set, the API also has the figure's
            growth in each time interval.
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
        """Return the figure's value minus the number of its retracted events."""
        if not self.retracted:
            return self.read(totals)
        # If an event was counted before an interval and retracted in the interval, the
        # difference of the growths may be negative.
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

    The counts are a view's totals, or the growth of these totals in an interval. For
    attributes that are not listed here, see `Figure`.

    Attributes:
        part: Names of fields of the totals; the sum of their values is the part.
        rest: Names of fields; the sum of their values is the whole minus the part.
        retracted: Names of fields that count events in `rest` that later proved wrong.
            The share counts these events in the part.
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
        # If a loss was counted before an interval and retracted in the interval,
        # `retracted` may exceed `rest`.
        return Proportion(part + min(retracted, rest), part + rest)


Entry = Figure | Share | Family
"""One declaration in a `FigureTable`."""


def verdict_entries(
    one: str, metric: str, since_metric: str, since_if: str = ""
) -> list[Entry]:
    """Declare a metric and figures for the verdict of a view.

    The metric has the label `verdict`. `one` is the word for one view. `since_if` is
    the end of the help of `since_metric`; it states when the start of a verdict is
    known.
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
            "Reason of the verdict: the first reason in docs/figures.md whose "
            "condition holds.",
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
    """Return the entries; those on a page that have no group get the group `group`."""

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
    """A chart on a view's page.

    The chart shows the figures and shares whose `line` names the chart's `key`.

    Attributes:
        note: One or two sentences that explain how to read the chart.
        scale: `SECONDS` for figures of `Unit.DURATIONS`, `PERCENT` for shares, `COUNT`
            or `PARTS` for counts.
        limit: A line for comparison; allowed only if the scale is `SECONDS`. If a share
            in the chart has an SLO, the chart always shows a line for the SLO.
    """

    key: str
    title: str
    note: str
    scale: Scale
    limit: Limit | None = None
