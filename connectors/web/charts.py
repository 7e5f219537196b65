"""What a channel's charts show, figure by figure; `drawing` makes pictures of them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connectors.web import words
from connectors.web.figure import Ratio
from connectors.web.figures import eventual_delivery
from connectors.web.trends import Growth, Trend
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.histogram import BUCKETS_MS
from sds_core.observer.settings import DEFAULTS


class Scale(enum.Enum):
    """What the values of a chart are, and so how they are drawn."""

    SECONDS = "seconds"
    """On a logarithmic scale over all buckets, as lines."""
    PERCENT = "percent"
    """Up to 100, as lines."""
    COUNT = "count"
    """From zero on, as lines."""
    PARTS = "parts"
    """Counts that add up, as stacked bars."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or one part of each bar.

    Attributes:
        name: What it is.
        values: One for each interval; None where there is nothing to measure.
        texts: The same in words.
        is_limit: Whether it is a line that the others are held against.
    """

    name: str
    values: Sequence[float | None]
    texts: Sequence[str]
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Figures over time, for a picture and for a table.

    Attributes:
        key: Its name within the page.
        title: What it shows.
        note: How to read it, in one sentence or two.
        scale: What its values are.
        times: When each interval began, hours and minutes in UTC.
        ticks: Those of the times that are worth a label.
        series: At least one.
    """

    key: str
    title: str
    note: str
    scale: Scale
    times: Sequence[str]
    ticks: Sequence[str]
    series: Sequence[Series]

    @property
    def table(self) -> list[tuple[str, list[str]]]:
        """Rows of the table, newest first: time, then a text for each figure."""
        columns = [series.texts for series in self.series if not series.is_limit]
        rows = zip(self.times, zip(*columns, strict=True), strict=True)
        return [(time, list(texts)) for time, texts in rows][::-1]

    @property
    def columns(self) -> list[str]:
        """Headings of the table after that of the time."""
        return [series.name for series in self.series if not series.is_limit]


def channel_charts(trend: Trend, settings: ChannelSettings) -> list[Chart]:
    """The charts of a channel's page.

    Args:
        trend: What happened.
        settings: What the operator says of the channel.
    """
    times = [words.time_of_day(begin_ms) for begin_ms in trend.begins_ms]
    ticks = [words.time_of_day(begin_ms) for begin_ms in _ticks_ms(trend)]
    deadline = words.duration(DEFAULTS.ack_deadline_ms)
    return [
        Chart(
            "latency",
            "Acknowledgement latency",
            "Definite acknowledgements; each percentile is the upper bound of its "
            f"bucket. The straight line is the deadline, {deadline}.",
            Scale.SECONDS,
            times,
            ticks,
            [
                *(_percentile(trend, percent) for percent in (50, 95, 99)),
                _limit(trend, f"deadline {deadline}", DEFAULTS.ack_deadline_ms / 1000),
            ],
        ),
        Chart(
            "objectives",
            "Objectives",
            "Messages acknowledged in time, and deliveries that reached their "
            "participant. The straight lines are what is to be reached. All in all: "
            f"{words.share(*_in_time(trend.total), decimals=2)} in time, "
            f"{words.share(*_delivered(trend.total), decimals=2)} delivered.",
            Scale.PERCENT,
            times,
            ticks,
            [
                _ratio(trend, "in time", _in_time),
                _ratio(trend, "delivered", _delivered),
                _objective(trend, "in time", settings.acknowledgement_objective),
                _objective(trend, "delivered", settings.delivery_objective),
            ],
        ),
        Chart(
            "gaps",
            "Missing dependencies",
            "Those that ended, by outcome.",
            Scale.PARTS,
            times,
            ticks,
            [
                _count(trend, "late", "gaps_late"),
                _count(trend, "repaired", "gaps_repaired"),
                _count(trend, "recovered late", "gaps_recovered_late"),
                _count(trend, "lost", "gaps_lost"),
                _count(trend, "tap gap", "gaps_tap_gap"),
            ],
        ),
        Chart(
            "repair",
            "Repair",
            "Episodes that were answered or expired, and responses on top of another.",
            Scale.COUNT,
            times,
            ticks,
            [
                _count(trend, "answered", "repair_answered"),
                _count(trend, "expired", "repair_expired"),
                _count(trend, "redundant", "repair_redundant"),
            ],
        ),
        Chart(
            "traffic",
            "Traffic",
            "Distinct messages, and frames with rebroadcasts by kind.",
            Scale.COUNT,
            times,
            ticks,
            [
                _count(trend, "messages", "messages"),
                _count(trend, "content frames", "frames_content"),
                _count(trend, "sync frames", "frames_sync"),
                _count(trend, "ephemeral frames", "frames_ephemeral"),
            ],
        ),
    ]


def _ticks_ms(trend: Trend) -> list[int]:
    """Round times, about six of them."""
    begins_ms = trend.begins_ms
    apart_ms = next(
        minutes * 60_000
        for minutes in (10, 30, 60, 240)
        if minutes * 60_000 * 6 >= len(begins_ms) * trend.step_ms
    )
    return [begin_ms for begin_ms in begins_ms if begin_ms % apart_ms == 0]


def _percentile(trend: Trend, percent: int) -> Series:
    def seconds(growth: Growth) -> float | None:
        if not growth.latency.count:
            return None
        # The open bucket is drawn at the top of the scale.
        return (growth.latency.percentile_ms(percent) or BUCKETS_MS[-1]) / 1000

    return _series(
        trend,
        f"p{percent}",
        seconds,
        lambda growth: words.percentile(growth.latency, percent),
    )


def _count(trend: Trend, name: str, field: str) -> Series:
    return _series(
        trend,
        name,
        lambda growth: growth.counts[field],
        lambda growth: words.number(growth.counts[field]),
    )


def _ratio(trend: Trend, name: str, ratio: Callable[[Growth], Ratio]) -> Series:
    def percent(growth: Growth) -> float | None:
        value = ratio(growth).value
        return None if value is None else 100 * value

    return _series(
        trend, name, percent, lambda growth: words.share(*ratio(growth), decimals=1)
    )


def _in_time(growth: Growth) -> Ratio:
    part = growth.counts["acknowledged_in_time"]
    return Ratio(part, part + growth.counts["unacknowledged"])


def _delivered(growth: Growth) -> Ratio:
    counts = growth.counts
    return eventual_delivery(
        counts["deliveries_first_pass"] + counts["deliveries_recovered"],
        counts["deliveries_lost"],
        counts["deliveries_retracted"],
    )


def _objective(trend: Trend, name: str, ratio: float) -> Series:
    return _limit(trend, f"{name}: {words.percent(ratio)}", 100 * ratio)


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


def _limit(trend: Trend, name: str, value: float) -> Series:
    count = len(trend.growth)
    return Series(name, [value] * count, [name] * count, is_limit=True)
