"""Content of charts; their pictures need neither style nor script."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from connectors.web.charts import Chart, charts_of
from connectors.web.drawing import draw
from connectors.web.trends import Growth, Trend
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.figures import Scale
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.settings import DEFAULTS, ObserverSettings

NOTHING = Growth()
NOON_MS = 1_786_276_800_000
MINUTE_MS = 60_000


def growth(latency_bucket: int | None = None, **counts: int) -> Growth:
    """Growth of some figures, and one acknowledgement in a bucket."""
    made = Growth(counts)
    if latency_bucket is not None:
        made["definite_latency", latency_bucket] = 1
    return made


def charts(
    *found: Growth | None,
    step_ms: int = MINUTE_MS,
    observer: ObserverSettings = DEFAULTS,
) -> dict[str, Chart]:
    """The charts of a trend from noon on."""
    settings = ChannelSettings(delivery_objective=0.999)
    trend = Trend(NOON_MS, step_ms, found)
    made = charts_of(CHANNEL_FIGURES, trend, settings, observer)
    return {chart.key: chart for chart in made}


def test_table_has_the_figures_of_the_picture_newest_first() -> None:
    """Times in UTC, words for each interval, and a dash where nothing is known."""
    found = charts(growth(4, gaps_lost=2), None, growth(12))
    assert found["latency"].columns == ["p50", "p95", "p99"]
    assert found["latency"].table == [
        ("12:02", ["> 10 min"] * 3),
        ("12:01", ["\N{EN DASH}"] * 3),
        ("12:00", ["≤ 5 s"] * 3),
    ]
    gaps = found["gaps"]
    lost = gaps.columns.index("lost")
    assert [texts[lost] for _, texts in gaps.table] == ["0", "\N{EN DASH}", "2"]
    assert gaps.series[lost].values == [2, None, 0]


def test_objectives_are_drawn_beside_the_reached_shares() -> None:
    """Each has a line of its own, and a summary in words."""
    reached = growth(
        acknowledged_in_time=3, unacknowledged=1, deliveries_first_pass=9,
        deliveries_lost=1,
    )  # fmt: skip
    chart = charts(reached, NOTHING)["objectives"]
    assert [(s.name, list(s.values)) for s in chart.series] == [
        ("in time", [75.0, None]),
        ("delivered", [90.0, None]),
        ("in time: 95 %", [95.0, 95.0]),
        ("delivered: 99.9 %", [99.9, 99.9]),
    ]
    assert "75.00 % in time, 90.00 % delivered" in chart.note
    nothing_delivered = charts(growth(acknowledged_in_time=1))["objectives"]
    assert "Over all intervals: 100 % in time." in nothing_delivered.note
    assert "Over all" not in charts(NOTHING)["objectives"].note


def test_deadline_in_the_chart_is_that_of_the_job() -> None:
    """The line, its name and the sentence follow `[observer] ack_deadline_ms`."""
    for observer, seconds, name in (
        (DEFAULTS, 120, "deadline 2 min"),
        (ObserverSettings(ack_deadline_ms=60_000), 60, "deadline 1 min"),
    ):
        chart = charts(growth(3), observer=observer)["latency"]
        (line,) = [series for series in chart.series if series.is_limit]
        assert (line.name, list(line.values)) == (name, [seconds])
        assert f"The straight line shows the {name}." in chart.note


def test_percentiles_of_the_whole_time_are_said_in_words() -> None:
    """p95 is visible even where its line lies under that of p99."""
    found = charts(*[growth(0)] * 90, *[growth(4)] * 9, growth(12))
    said = "Over all intervals: p50 ≤ 0.25 s, p95 ≤ 5 s, p99 ≤ 5 s."
    assert said in found["latency"].note
    assert "p95" not in charts(NOTHING)["latency"].note


def test_chart_without_anything_to_draw_is_empty() -> None:
    """A share of 0 % is something, a count of 0 is not."""
    assert all(chart.is_empty for chart in charts(NOTHING, None).values())
    found = charts(NOTHING, growth(unacknowledged=1, gaps_lost=1))
    empty = {key for key, chart in found.items() if chart.is_empty}
    assert empty == {"latency", "repair", "traffic"}
    assert not charts(growth(3))["latency"].is_empty


@pytest.mark.parametrize("minutes", [3, 7, 20, 59])
def test_short_axis_of_time_has_labels(minutes: int) -> None:
    """At least one, and not one for each interval."""
    ticks = charts(*[NOTHING] * minutes)["latency"].ticks
    assert 2 <= len(ticks) <= 7


@pytest.mark.parametrize("hours", [1, 3, 6, 24])
def test_axis_of_time_has_a_few_round_labels(hours: int) -> None:
    """For every number of hours they can be read."""
    step_ms = {1: 1, 3: 3, 6: 5, 24: 15}[hours] * MINUTE_MS
    count = hours * 60 * MINUTE_MS // step_ms
    ticks = charts(*[NOTHING] * count, step_ms=step_ms)["latency"].ticks
    assert ticks[0] == "12:00"
    assert len(ticks) == 6


@pytest.mark.parametrize(
    "found",
    [
        [NOTHING],
        [None] * 60,
        [growth(12, messages=1_234_567, gaps_lost=3), None, growth(0, gaps_late=1)],
    ],
)
@pytest.mark.parametrize("scale", Scale)
def test_picture_needs_no_style_or_script(
    found: list[Growth | None], scale: Scale
) -> None:
    """Only shapes and text with classes, no link, comment or foreign id."""
    drawn = [draw(c) for c in charts(*found).values() if c.scale is scale]
    assert drawn
    for svg in drawn:
        assert "<!--" not in svg
        root = ElementTree.fromstring(svg)  # noqa: S314 - our own
        tags = {part.tag.rpartition("}")[2] for part in root.iter()}
        assert tags <= {"svg", "g", "path", "rect", "circle", "text", "title"}
        names = {name for part in root.iter() for name in part.attrib}
        assert not names & {"style", "id", "href", "onclick", "onload"}
        assert root.get("role") == "img"
        assert root.get("aria-label")


def test_picture_has_its_values_as_tooltips() -> None:
    """Each dot and bar has time, name and value; empty bars are left out."""
    found = charts(growth(4, gaps_lost=2), growth())
    assert "12:00  p95: ≤ 5 s" in draw(found["latency"])
    bars = draw(found["gaps"])
    assert "12:00  lost: 2" in bars
    assert bars.count('class="bar"') == 1
