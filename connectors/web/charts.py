"""Computes the values and words of a view's charts; `drawing` draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from connectors.web import words
from connectors.web.trends import Growth, Trend
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.figures import ChartShape, Figure, Limit, Scale, Share, Unit
from sds_core.observer.histogram import BUCKETS_MS
from sds_core.observer.settings import ObserverSettings
from sds_core.text import byte_size


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart, or one part of each bar.

    Attributes:
        values: One value for each interval of the chart; None if nothing was measured.
        is_limit: Whether the series is a limit, drawn as a straight line.
        spans: For each value, the lower and upper bound of its forecast interval, or
            None; empty if the series has no forecast intervals.
    """

    name: str
    values: Sequence[float | None]
    texts: Sequence[str]
    is_limit: bool = False
    spans: Sequence[tuple[float, float] | None] = ()

    @classmethod
    def limit(cls, name: str, value: float, number: int) -> Series:
        """Return the line of a limit: the same value in each of `number` intervals."""
        return cls(name, [value] * number, [name] * number, is_limit=True)


@dataclass(frozen=True, slots=True)
class Chart:
    """Figures over time, which a page shows as a picture and as a table.

    Attributes:
        times: Name of each interval, usually its start in UTC.
        ticks: The entries of `times` that have a label on the axis.
        unit: In a chart of counts, returns the axis label of a value.
        forecast_from: Number of bars before the first bar of the forecast; None if the
            chart has no forecast.
        heading: Heading of the table's first column. If the heading is empty, the
            column contains times, and the table begins with the newest time.
    """

    key: str
    title: str
    note: str
    scale: Scale
    times: Sequence[str]
    ticks: Sequence[str]
    series: Sequence[Series]
    unit: Callable[[float], str] = "{:,.10g}".format
    forecast_from: int | None = None
    heading: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether no interval has a value; counts of 0 are no values here."""
        counts = self.scale in (Scale.COUNT, Scale.PARTS)
        return not any(
            value if counts else value is not None
            for series in self.series
            if not series.is_limit
            for value in series.values
        )

    @property
    def table(self) -> list[tuple[str, list[str]]]:
        """Rows of the table: an interval's name, and its text in each series."""
        columns = [series.texts for series in self.series if not series.is_limit]
        rows = zip(self.times, zip(*columns, strict=True), strict=True)
        return [(time, list(texts)) for time, texts in rows][
            :: 1 if self.heading else -1
        ]

    @property
    def columns(self) -> list[str]:
        """Headings of the table's columns, without the first column."""
        return [series.name for series in self.series if not series.is_limit]


def charts_of(
    table: FigureTable[Any],
    trend: Trend,
    settings: ChannelSettings,
    observer: ObserverSettings,
) -> list[Chart]:
    """Return the charts of a view's page, with lines for the view's SLOs and limits."""
    times = [words.time_of_day(begin_ms) for begin_ms in trend.begins_ms]
    ticks = [words.time_of_day(begin_ms) for begin_ms in _ticks_ms(trend)]

    def chart(shape: ChartShape) -> Chart:
        entries = table.in_chart(shape.key)
        note = " ".join(_notes(shape, entries, trend, observer))
        series = list(_all_series(shape, entries, trend, settings, observer))
        return Chart(shape.key, shape.title, note, shape.scale, times, ticks, series)

    return [chart(shape) for shape in table.charts]


def _notes(
    shape: ChartShape,
    entries: Sequence[Figure | Share],
    trend: Trend,
    observer: ObserverSettings,
) -> Iterator[str]:
    yield shape.note
    if shape.scale is Scale.SECONDS:
        yield "Each percentile is the upper bound of its histogram bucket."
    if shape.limit is not None:
        yield f"The straight line shows the {_limit_name(shape.limit, observer)}."
    total = trend.total
    shares = [one for one in entries if isinstance(one, Share) and one.line]
    if any(share.objective for share in shares):
        yield "The straight lines show the SLOs."
    reached = [
        f"{words.share(*found, decimals=2)} {_name(share)}"
        for share in shares
        if (found := share.of_counts(total)).whole
    ]
    if reached:
        yield f"Over all intervals: {', '.join(reached)}."
    for figure in entries:
        if isinstance(figure, Figure) and figure.unit is Unit.DURATIONS:
            durations = total.histogram(figure.field)
            if durations.count:
                bounds = [
                    f"p{one.percent} {words.percentile(durations, one.percent)}"
                    for one in figure.percentiles
                ]
                yield f"Over all intervals: {', '.join(bounds)}."


def _all_series(
    shape: ChartShape,
    entries: Sequence[Figure | Share],
    trend: Trend,
    settings: ChannelSettings,
    observer: ObserverSettings,
) -> Iterator[Series]:
    for entry in entries:
        if isinstance(entry, Share):
            yield _share(trend, entry)
        elif entry.unit is Unit.DURATIONS:
            for percentile in entry.percentiles:
                yield _percentile(trend, entry, percentile.percent)
        else:
            yield _count(trend, entry)
    if shape.limit is not None:
        name = _limit_name(shape.limit, observer)
        limit_s = _limit_ms(shape.limit, observer) / 1000
        yield Series.limit(name, limit_s, len(trend.growth))
    for entry in entries:
        if isinstance(entry, Share) and entry.objective is not None:
            least = getattr(settings, entry.objective.setting)
            name = f"{_name(entry)}: {words.percent(least)}"
            yield Series.limit(name, 100 * least, len(trend.growth))


def _name(entry: Figure | Share) -> str:
    return entry.line.name if entry.line else ""


def _limit_name(limit: Limit, observer: ObserverSettings) -> str:
    return f"{limit.name} {words.duration(_limit_ms(limit, observer))}"


def _limit_ms(limit: Limit, observer: ObserverSettings) -> int:
    return int(getattr(observer, limit.setting))


def _ticks_ms(trend: Trend) -> list[int]:
    # Return the round times that have a label on the axis: seven or fewer.
    begins_ms = trend.begins_ms
    apart_ms = next(
        minutes * 60_000
        for minutes in (1, 2, 5, 10, 30, 60, 120, 240)
        if minutes * 60_000 * 6 >= len(begins_ms) * trend.step_ms
    )
    return [begin_ms for begin_ms in begins_ms if begin_ms % apart_ms == 0]


def _percentile(trend: Trend, figure: Figure, percent: int) -> Series:
    def seconds(growth: Growth) -> float | None:
        durations = growth.histogram(figure.field)
        if not durations.count:
            return None
        # The last bucket has no upper bound. If a percentile is in this bucket, draw it
        # at the greatest bound of the other buckets.
        return (durations.percentile_ms(percent) or BUCKETS_MS[-1]) / 1000

    return _series(
        trend,
        f"{_name(figure)} p{percent}".strip(),
        seconds,
        lambda growth: words.percentile(growth.histogram(figure.field), percent),
    )


def _count(trend: Trend, figure: Figure) -> Series:
    text = byte_size if figure.unit is Unit.BYTES else words.number
    return _series(
        trend,
        _name(figure),
        lambda growth: growth[figure.field],
        lambda growth: text(growth[figure.field]),
    )


def _share(trend: Trend, share: Share) -> Series:
    def percent(growth: Growth) -> float | None:
        value = share.of_counts(growth).value
        return None if value is None else 100 * value

    return _series(
        trend,
        _name(share),
        percent,
        lambda growth: words.share(*share.of_counts(growth), decimals=1),
    )


def _series(
    trend: Trend,
    name: str,
    value: Callable[[Growth], float | None],
    text: Callable[[Growth], str],
) -> Series:
    return Series(
        name,
        [None if growth is None else value(growth) for growth in trend.growth],
        [words.NOTHING if growth is None else text(growth) for growth in trend.growth],
    )
