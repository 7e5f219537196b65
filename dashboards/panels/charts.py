"""All kinds of panels except tables: figures, lines, heatmaps and states."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from grafana_foundation_sdk.builders import (
    common,
    heatmap,
    stat,
    statetimeline,
    timeseries,
)
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmap_models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.panels.base import (
    Link,
    coloured_by_threshold,
    data_link,
    finished,
    target,
    thresholds,
)
from dashboards.panels.colours import OUTCOMES, PLAIN, SERIES, Steps
from dashboards.panels.series import Query, per_step


def figure(
    title: str,
    description: str,
    *queries: Query | str,
    unit: str = "short",
    width: int = 4,
    steps: Steps = PLAIN,
    mappings: Sequence[models.ValueMapping] = (),
    link: Link | None = None,
    shows_name: bool = False,
    absent: str = "nothing",
) -> stat.Panel:
    """Return a panel that shows numbers in large type.

    Each query returns one number: the value at the end of the dashboard's time range.
    `mappings` replaces numbers with words. If no series exists, the panel shows
    `absent`. If `shows_name`, the panel shows the name of the series instead of the
    value. See `finished` for the other arguments.
    """
    panel = (
        stat.Panel()
        .graph_mode(common_models.BigValueGraphMode.NONE)
        .color_mode(common_models.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .mappings(list(mappings))
        .thresholds(thresholds(steps))
        .color_scheme(coloured_by_threshold())
        .no_value(absent)
    )
    if shows_name:
        panel = panel.text_mode(common_models.BigValueTextMode.NAME)
    if link:
        panel = panel.data_links([data_link(link)])
    # A range query would also return the last value of a series that has ended.
    targets = [target(query).instant() for query in queries]
    return finished(panel, title, description, targets, width, 4, unit)


def moment(
    title: str, description: str, expression: str, absent: str = "nothing"
) -> stat.Panel:
    """Return a panel that shows how long ago the time `expression`, Unix s, was."""
    since = f"1000 * {expression}"
    return figure(title, description, since, unit="dateTimeFromNow", absent=absent)


def lines(
    title: str,
    description: str,
    *queries: Query,
    unit: str = "short",
    width: int = 12,
    stacked: bool = False,
    limits: Steps = (),
) -> timeseries.Panel:
    """Return a chart of figures over time; see `finished`.

    If `stacked`, the series are the parts of a whole. `limits` are drawn as dashed
    lines. If all figures are counts per step, the chart has bars, because most of these
    counts are zero.
    """
    bars = all(query.is_per_step for query in queries)
    shown = common_models.GraphDrawStyle
    panel = (
        timeseries.Panel()
        .draw_style(shown.BARS if bars else shown.LINE)
        .show_points(common_models.VisibilityMode.NEVER)
        .fill_opacity(60 if stacked or bars else 8)
        .line_width(1)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(common_models.LegendDisplayMode.LIST)
            .placement(common_models.LegendPlacement.BOTTOM)
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_models.TooltipDisplayMode.MULTI)
            .sort(common_models.SortOrder.DESCENDING)
        )
        .axis_soft_min(0)
    )
    if stacked:
        panel = panel.stacking(
            common.StackingConfig().mode(common_models.StackingMode.NORMAL)
        )
    if limits:
        panel = panel.thresholds(thresholds(limits)).thresholds_style(
            common.GraphThresholdsStyleConfig().mode(
                common_models.GraphThresholdsStyleMode.DASHED
            )
        )
    for name, colour in _colours(queries).items():
        fixed = {"mode": "fixed", "fixedColor": colour}
        panel = panel.override_by_name(
            name, [models.DynamicConfigValue("color", fixed)]
        )
    targets = [target(query).range() for query in queries]
    return finished(panel, title, description, targets, width, unit=unit)


ratio = partial(figure, unit="percentunit")
"""Like `figure`, but each value is a ratio, and the panel shows it in percent."""

ratios = partial(lines, unit="percentunit")
"""Like `lines`, but each value is a ratio, and the chart shows it in percent."""


def heat(
    title: str, description: str, histogram: str, scope: str, **labels: str
) -> heatmap.Panel:
    """Return a heatmap of durations over time, from a histogram in seconds."""
    panel = (
        heatmap.Panel()
        .calculate(False)
        .y_axis(
            heatmap.YAxisConfig()
            .unit("s")
            .axis_placement(common_models.AxisPlacement.LEFT)
        )
        .color(
            heatmap.HeatmapColorOptions()
            .mode(heatmap_models.HeatmapColorMode.SCHEME)
            .scheme("Oranges")
            .steps(64)
        )
        .cell_gap(1)
        .tooltip(heatmap.HeatmapTooltip().mode(common_models.TooltipDisplayMode.SINGLE))
        .show_legend()
    )
    buckets = per_step(f"{histogram}_bucket", scope, "{{le}}", **labels)
    counts = target(buckets).range().format(PromQueryFormat.HEATMAP)
    return finished(panel, title, description, [counts], 12, unit="s")


def states(
    title: str, description: str, query: Query, mappings: Sequence[models.ValueMapping]
) -> statetimeline.Panel:
    """Return a chart of states over time, one row per series.

    For `mappings`, see `figure`.
    """
    panel = (
        statetimeline.Panel()
        .mappings(list(mappings))
        .color_scheme(coloured_by_threshold())
        .thresholds(thresholds(PLAIN))
        .merge_values(True)
        .show_value(common_models.VisibilityMode.AUTO)
    )
    return finished(panel, title, description, [target(query).range()], 24, 4)


def _colours(queries: Sequence[Query]) -> dict[str, str]:
    colours = {q.legend: SERIES[q.legend] for q in queries if q.legend in SERIES}
    if any(query.legend == "{{outcome}}" for query in queries):
        colours |= OUTCOMES
    return colours
