"""The kinds of panels, each with all that every panel must have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmap_models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.panels.colours import PLAIN, SERIES, Steps

DATA_SOURCE = common_models.DataSourceRef(type_val="prometheus", uid="${datasource}")

Panel = (
    stat.Panel | timeseries.Panel | heatmap.Panel | statetimeline.Panel | table.Panel
)
_P = TypeVar(
    "_P",
    stat.Panel,
    timeseries.Panel,
    heatmap.Panel,
    statetimeline.Panel,
    table.Panel,
)


@dataclass(frozen=True, slots=True)
class Text:
    """What a panel says of itself.

    Attributes:
        title: Unique within its dashboard.
        description: What it shows and what is bad, in plain words.
        unit: Grafana's id of the unit.
    """

    title: str
    description: str
    unit: str = "short"


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and what its series are called."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: an instant query, one value per row.

    Attributes:
        header: What stands above it.
        expression: Grouped by the table's key, in the first column by further labels.
        unit: Grafana's id of the unit.
        steps: Colours of its values.
        mappings: Words for its values.
    """

    header: str
    expression: str
    unit: str = "short"
    steps: Steps = PLAIN
    mappings: list[models.ValueMapping] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Link:
    """A way from a value to a page."""

    title: str
    url: str


def figure(
    text: Text,
    *queries: Query,
    width: int = 4,
    steps: Steps = PLAIN,
    mappings: Sequence[models.ValueMapping] = (),
    link: Link | None = None,
    absent: str = "nothing",
) -> stat.Panel:
    """Large numbers as of now, or as of the end of the range.

    Args:
        text: What it says of itself.
        queries: One number each.
        width: In columns of 24.
        steps: Colours of the values.
        mappings: Words for values.
        link: Where a click leads.
        absent: What stands there when there is no series.
    """
    panel = (
        stat.Panel()
        .graph_mode(common_models.BigValueGraphMode.NONE)
        .color_mode(common_models.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .mappings(list(mappings))
        .thresholds(_thresholds(steps))
        .color_scheme(_coloured_by_threshold())
        .no_value(absent)
    )
    if link:
        panel = panel.data_links([_data_link(link)])
    # As of now: the last value of a range would go on saying that all is fine.
    targets = [_target(query).instant() for query in queries]
    return _finished(panel, text, targets, width, height=4)


def lines(
    text: Text,
    *queries: Query,
    width: int = 12,
    stacked: bool = False,
    bars: bool = False,
    limits: Steps = (),
) -> timeseries.Panel:
    """Figures over time.

    Args:
        text: What it says of itself.
        queries: One or more series each.
        width: In columns of 24.
        stacked: Whether the series are parts of a whole.
        bars: For counts per step, which are mostly 0.
        limits: Drawn as dashed lines.
    """
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
        panel = panel.thresholds(_thresholds(limits)).thresholds_style(
            common.GraphThresholdsStyleConfig().mode(
                common_models.GraphThresholdsStyleMode.DASHED
            )
        )
    for legend, colour in SERIES.items():
        if any(_can_be(query, legend) for query in queries):
            panel = panel.override_by_name(legend, [_fixed(colour)])
    return _finished(panel, text, [_target(q).range() for q in queries], width)


def heat(text: Text, expression: str, width: int = 12) -> heatmap.Panel:
    """A histogram over time.

    Args:
        text: What it says of itself; the unit is that of the buckets.
        expression: One series per bucket, with the label `le`.
        width: In columns of 24.
    """
    panel = (
        heatmap.Panel()
        .calculate(False)
        .y_axis(heatmap.YAxisConfig().unit(text.unit))
        .color(
            heatmap.HeatmapColorOptions()
            .mode(heatmap_models.HeatmapColorMode.SCHEME)
            .scheme("Oranges")
            .steps(64)
        )
        .cell_gap(1)
        .tooltip(
            heatmap.HeatmapTooltip().mode(common_models.TooltipDisplayMode.SINGLE)
        )
        .show_legend()
    )
    target = (
        _target(Query(expression, "{{le}}")).range().format(PromQueryFormat.HEATMAP)
    )
    return _finished(panel, text, [target], width)


def states(
    text: Text,
    query: Query,
    mappings: Sequence[models.ValueMapping],
    width: int = 24,
    height: int = 5,
) -> statetimeline.Panel:
    """Which state held when, a row per series.

    Args:
        text: What it says of itself.
        query: Numbers that stand for states.
        mappings: Words and colours of the states.
        width: In columns of 24.
        height: In rows of the grid.
    """
    panel = (
        statetimeline.Panel()
        .mappings(list(mappings))
        .color_scheme(_coloured_by_threshold())
        .thresholds(_thresholds(PLAIN))
        .merge_values(True)
        .show_value(common_models.VisibilityMode.AUTO)
    )
    return _finished(panel, text, [_target(query).range()], width, height)


def rows(
    text: Text,
    key: str,
    *columns: Column,
    headers: dict[str, str],
    links: dict[str, Link] | None = None,
    width: int = 24,
    height: int = 9,
) -> table.Panel:
    """A table as of now, the greatest values of the first column first.

    Args:
        text: What it says of itself.
        key: The label by which the columns are joined.
        columns: Its values.
        headers: What stands above the columns of labels, by label.
        links: Where a click on a label leads, by label.
        width: In columns of 24.
        height: In rows of the grid.
    """
    panel = (
        table.Panel()
        .filterable(True)
        .sort_by([common.TableSortByFieldState(columns[0].header).desc(True)])
        .with_transformation(
            models.DataTransformerConfig(
                id_val="joinByField", options={"byField": key, "mode": "outer"}
            )
        )
        .with_transformation(
            models.DataTransformerConfig(
                id_val="organize",
                options={
                    "excludeByName": {
                        name: True
                        for name in ("Time", *(f"Time {n + 1}" for n in _upto(columns)))
                    },
                    "indexByName": {
                        name: n
                        for n, name in enumerate([*headers, *_values(columns)])
                    },
                    "renameByName": {},
                },
            )
        )
    )
    for label, header in headers.items():
        properties = [models.DynamicConfigValue("displayName", header)]
        if links and label in links:
            link = _data_link(links[label]).build()
            properties.append(models.DynamicConfigValue("links", [link]))
        panel = panel.override_by_name(label, properties)
    for name, column in zip(_values(columns), columns, strict=True):
        panel = panel.override_by_name(name, _column_properties(column))
    targets = [
        _target(Query(column.expression)).instant().format(PromQueryFormat.TABLE)
        for column in columns
    ]
    return _finished(panel, text, targets, width, height)


def _upto(columns: Sequence[Column]) -> range:
    return range(len(columns))


def _values(columns: Sequence[Column]) -> list[str]:
    """What Grafana calls the values; a single query's have no letter."""
    if len(columns) == 1:
        return ["Value"]
    return [f"Value #{_ref(n)}" for n in _upto(columns)]


def _column_properties(column: Column) -> list[models.DynamicConfigValue]:
    properties = [
        models.DynamicConfigValue("displayName", column.header),
        models.DynamicConfigValue("unit", column.unit),
        models.DynamicConfigValue("mappings", column.mappings),
    ]
    if column.steps != PLAIN or column.mappings:
        properties += [
            models.DynamicConfigValue("thresholds", _thresholds(column.steps).build()),
            models.DynamicConfigValue("color", _coloured_by_threshold().build()),
            models.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
        ]
    return properties


def _finished(
    panel: _P,
    text: Text,
    targets: Sequence[prometheus.Dataquery],
    width: int,
    height: int = 8,
) -> _P:
    for n, target in enumerate(targets):
        panel = panel.with_target(target.ref_id(_ref(n)))
    return (
        panel.title(text.title)
        .description(text.description)
        .unit(text.unit)
        .datasource(DATA_SOURCE)
        .span(width)
        .height(height)
    )


def _target(query: Query) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .expr(query.expression)
        .legend_format(query.legend)
        .datasource(DATA_SOURCE)
    )


def _ref(n: int) -> str:
    """The letter by which Grafana tells a panel's queries apart."""
    return chr(ord("A") + n)


def _can_be(query: Query, legend: str) -> bool:
    """Whether a series of a query may bear this legend."""
    return query.legend == legend or query.legend.startswith("{{")


def _thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    return (
        dashboard.ThresholdsConfig()
        .mode(models.ThresholdsMode.ABSOLUTE)
        .steps([models.Threshold(value, colour) for value, colour in steps])
    )


def _coloured_by_threshold() -> dashboard.FieldColor:
    return dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS)


def _fixed(colour: str) -> models.DynamicConfigValue:
    return models.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})


def _data_link(link: Link) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(link.title).url(link.url)
