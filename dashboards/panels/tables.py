"""Panels that are tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from grafana_foundation_sdk.builders import common, table
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards import CHANNEL
from dashboards.panels.base import (
    Link,
    coloured_by_threshold,
    data_link,
    finished,
    ref,
    target,
    thresholds,
)
from dashboards.panels.colours import PLAIN, Steps
from dashboards.panels.frame import KEPT, channel_page
from dashboards.panels.series import Query


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: an instant query that returns one value per row.

    The result of `expression` has the table's key as its only label. In the first
    column, the result may have further labels.
    """

    header: str
    expression: str
    unit: str = "short"
    steps: Steps = PLAIN
    mappings: list[models.ValueMapping] = field(default_factory=list)


def moment(header: str, expression: str) -> Column:
    """Return a column that shows the times `expression`, Unix s, relative to now."""
    return Column(header, f"1000 * {expression}", unit="dateTimeFromNow")


def rows(
    title: str,
    description: str,
    key: str,
    *columns: Column,
    headers: dict[str, str],
    links: dict[str, Link],
    width: int = 24,
    height: int = 9,
) -> table.Panel:
    """Return a table of current values, sorted by the first column, greatest first.

    Series with the same value of the label `key` share one row. `headers` maps a label
    to the header of its column. `links` maps a label to the link in its column. See
    `finished` for the other arguments.
    """
    panel = (
        table.Panel()
        .filterable(True)
        .sort_by(
            [common.TableSortByFieldState().display_name(columns[0].header).desc(True)]
        )
    )
    if len(columns) > 1:
        join = models.DataTransformerConfig(
            id_val="joinByField", options={"byField": key, "mode": "outer"}
        )
        panel = panel.with_transformation(join)
    panel = panel.with_transformation(_arrangement(headers, columns))
    for label, header in headers.items():
        properties = [models.DynamicConfigValue("displayName", header)]
        if label in links:
            link = data_link(links[label]).build()
            properties.append(models.DynamicConfigValue("links", [link]))
        panel = panel.override_by_name(label, properties)
    for name, column in zip(_values(columns), columns, strict=True):
        panel = panel.override_by_name(name, _column_properties(column))
    targets = [
        target(Query(column.expression)).instant().format(PromQueryFormat.TABLE)
        for column in columns
    ]
    return finished(panel, title, description, targets, width, height)


def channel_rows(
    title: str, description: str, *columns: Column, height: int = 9
) -> table.Panel:
    """Return a table with one row per channel.

    The result of the first column must also have the label `name`. In each row, the
    name links to the channel's dashboard, and the id links to the channel's page.
    """
    channel = "__data.fields.channel"
    query = f"var-channel=${{{channel}:percentencode}}&{KEPT}"
    return rows(
        title,
        description,
        "channel",
        *columns,
        headers={"name": "Channel", "channel": "Id"},
        links={
            "name": Link("Open the channel's dashboard", f"/d/{CHANNEL}?{query}"),
            "channel": channel_page(channel),
        },
        height=height,
    )


def _arrangement(
    headers: Iterable[str], columns: Sequence[Column]
) -> models.DataTransformerConfig:
    times = ["Time", *(f"Time {n}" for n in range(1, len(columns) + 1))]
    order = [*headers, *_values(columns)]
    return models.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": dict.fromkeys(times, True),
            "indexByName": {name: n for n, name in enumerate(order)},
            "renameByName": {},
        },
    )


def _values(columns: Sequence[Column]) -> list[str]:
    """Return the names that Grafana gives to the columns with values.

    If only one such column exists, its name does not contain a query's letter.
    """
    if len(columns) == 1:
        return ["Value"]
    return [f"Value #{ref(n)}" for n in range(len(columns))]


def _column_properties(column: Column) -> list[models.DynamicConfigValue]:
    properties = [
        models.DynamicConfigValue("displayName", column.header),
        models.DynamicConfigValue("unit", column.unit),
        models.DynamicConfigValue("mappings", column.mappings),
    ]
    if column.steps != PLAIN or column.mappings:
        properties += [
            models.DynamicConfigValue("thresholds", thresholds(column.steps).build()),
            models.DynamicConfigValue("color", coloured_by_threshold().build()),
            models.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
        ]
    return properties
