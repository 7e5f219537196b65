"""Declares a figure of a view once, with all that is published about it.

A kind of view has one table of declarations (`figure_table.FigureTable`), in the
package ``figures`` beside its views. Report, exporter, API, pages, charts, history and
the tables of ``docs/metrics.md`` and ``docs/history.md`` are made from the declaration.
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
    """A `Histogram` of durations in milliseconds; exported in seconds."""
    TIME = "time"
    """Event time in Unix milliseconds, or None; exported in seconds."""
    RATIO = "ratio"
    """A float in [0, 1], or None. Report and history omit figures of this unit."""
    NUMBER = "number"
    """A float, or None. Report and history omit figures of this unit."""
    WORD = "word"
    """Text. Texts are not exported, and cannot be combined over several views."""


class Series(NamedTuple):
    """One series per view; `labels` has the values of the metric's own labels."""

    family: Family
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric of a view; see `sds_core.metrics.Metric`.

    Attributes:
        help: One sentence. If the metric has one figure and no labels, an empty help
            stands for the figure's help.
        samples: Reads all samples from the totals; None if figures of the table provide
            the samples.
    """

    name: str
    kind: MetricKind
    help: str = ""
    labels: tuple[str, ...] = ()
    samples: Callable[[Any], Iterable[Sample]] | None = None
    summable: bool = True

    def of(self, *labels: str) -> Series:
        """The series with these label values."""
        return Series(self, labels)


def counter(name: str, text: str = "", *labels: str) -> Family:
    """A metric that counts; its name ends in ``_total``."""
    return Family(name, MetricKind.COUNTER, text, labels)


def gauge(name: str, text: str = "", *labels: str) -> Family:
    """A metric whose value can increase and decrease."""
    return Family(name, MetricKind.GAUGE, text, labels)


def histogram(name: str, text: str = "", *labels: str) -> Family:
    """A metric of durations; its name ends in ``_seconds``."""
    return Family(name, MetricKind.HISTOGRAM, text, labels)


def left_out_counter(name: str, text: str, limits: Iterable[enum.StrEnum]) -> Family:
    """A metric that counts what limits dropped from a view; label `reason`."""
    reasons = tuple(limits)

    def samples(totals: Any) -> Iterable[Sample]:
        return [((one.value,), totals.left_out.get(one, 0)) for one in reasons]

    return Family(name, MetricKind.COUNTER, text, ("reason",), samples)


class Percentile(NamedTuple):
    """A percentile, in (0, 100), of a histogram on a page; see `Figure.column`."""

    percent: int
    column: int = 0


class Line(NamedTuple):
    """The position of a figure in a chart.

    Attributes:
        chart: Key of the `ChartShape`.
        name: Name of the line or bar. A figure of `Unit.DURATIONS` needs no name,
            because each percentile is a line.
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
        history: Whether the history has the figure and the report does not.
        detail: Report key of the list of all durations. The report has the list only
            with ``--report-detail``.
        group: Heading of the group on the page; empty if the page lacks the figure.
        heading: Name on the page; for percentiles, the text before ``p95``.
        key: Name in the URL of a page, if different from `field`.
        grave: Whether any value other than zero is a fault.
        retracted: Field that counts the figure's events that proved wrong. Pages show
            the figure minus these events. Report, metrics and history show the figure
            and the field separately.
        column: Position in the table of all views, from 1 on; 0 for a figure without a
            column.
        percentiles: Percentiles on the page, for `Unit.DURATIONS`.
        line: Position in a chart. The API also has the figure's growth in each
            interval.
        growth_key: Key of the figure's growth in ``/api/v1/minutes``, if different from
            `field`.
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
        """Return the figure's value; `unit` determines its type."""
        return getattr(totals, self.field)

    def standing(self, totals: Any) -> Any:
        """Return the value minus the retracted events."""
        if not self.retracted:
            return self.read(totals)
        # An event may be counted in one interval and retracted in a later interval.
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
    """A share that an operator wants to reach.

    Attributes:
        setting: Attribute of `ChannelSettings` that has the target, in [0, 1].
    """

    heading: str
    setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The share (part + retracted) / (part + rest) of some counts.

    A share is computed from totals, or from the growth in an interval. For attributes
    that are not listed, see `Figure`.

    Attributes:
        part: Fields of the totals that add up to the part.
        rest: Fields of the totals that add up to the whole minus the part.
        retracted: Fields that count the wrong events in `rest`. Wrong events belong to
            the part.
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
        """All fields that the share is computed from."""
        return self.part + self.rest + self.retracted

    def of_totals(self, totals: Any) -> Proportion:
        """The share since the first record."""
        return self.of_counts({name: getattr(totals, name) for name in self.fields})

    def of_counts(self, counts: Mapping[Any, int]) -> Proportion:
        """The share, computed from counts by field name."""
        part, rest, retracted = (
            sum(counts[name] for name in names)
            for names in (self.part, self.rest, self.retracted)
        )
        # A loss may be counted in one interval and retracted in a later interval.
        return Proportion(part + min(retracted, rest), part + rest)


Entry = Figure | Share | Family
"""One declaration of a table."""


def verdict_entries(
    one: str, metric: str, since_metric: str, since_if: str = ""
) -> list[Entry]:
    """The verdict of a view, as a metric with the label `verdict`, and its figures.

    `one` is the word for one view. `since_if` says when the verdict's start is known.
    """

    def samples(totals: Any) -> Iterable[Sample]:
        return [((each.value,), int(totals.verdict is each)) for each in Verdict]

    text = f"1 for the {one}'s current verdict, 0 for each other verdict."
    return [
        Family(metric, MetricKind.GAUGE, text, ("verdict",), samples, summable=False),
        Figure(
            "verdict",
            f"Health of the {one}, without regard to its taps.",
            Unit.WORD,
            report=("verdict",),
        ),
        Figure(
            "verdict_reason",
            "Reason of the verdict; if several reasons hold, the first.",
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
    """Return entries. If an entry has a name on the page but no group, set `group`."""

    def belongs(entry: Figure | Share) -> bool:
        return bool(entry.heading or entry.key) and not entry.group

    return [
        entry
        if isinstance(entry, Family) or not belongs(entry)
        else replace(entry, group=group)
        for entry in entries
    ]


class Scale(enum.Enum):
    """Type of the values of a chart, which decides how they are drawn."""

    SECONDS = "seconds"
    """Lines on a logarithmic scale that covers all buckets of a histogram."""
    PERCENT = "percent"
    """Lines on a scale that ends at 100."""
    COUNT = "count"
    """Lines on a scale that begins at zero."""
    PARTS = "parts"
    """Counts that add up, as stacked bars."""


class Limit(NamedTuple):
    """A straight line in a chart for comparison.

    Attributes:
        setting: The line shows the value of this field of
            `sds_core.observer.settings.ObserverSettings`, milliseconds.
    """

    name: str
    setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartShape:
    """A chart on the page of a view; the `line` of a figure or share names the chart.

    Attributes:
        note: How to read the chart, in one or two sentences.
        scale: Type of the values: `SECONDS` for `Unit.DURATIONS`, `PERCENT` for shares,
            otherwise a type for counts.
        limit: A line for comparison. Only charts with the scale `SECONDS` have a
            `limit`. The SLO of a share needs no `limit`.
    """

    key: str
    title: str
    note: str
    scale: Scale
    limit: Limit | None = None
