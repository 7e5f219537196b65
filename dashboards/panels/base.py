"""The parts that panels of all kinds have: text, links, thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from grafana_foundation_sdk.builders import (
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

from dashboards.panels.colours import Steps
from dashboards.panels.series import Query

DATA_SOURCE = common_models.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""Data source that the user has selected on the dashboard."""

Panel = (
    stat.Panel | timeseries.Panel | heatmap.Panel | statetimeline.Panel | table.Panel
)
P = TypeVar(
    "P", stat.Panel, timeseries.Panel, heatmap.Panel, statetimeline.Panel, table.Panel
)


@dataclass(frozen=True, slots=True)
class Link:
    """A link from a value to a page."""

    title: str
    url: str


def finished(
    panel: P,
    title: str,
    description: str,
    targets: Sequence[prometheus.Dataquery],
    width: int,
    height: int = 8,
    unit: str = "short",
) -> P:
    """Return a panel with the parts that every panel must have.

    The title is unique within the dashboard. The description says what the panel shows,
    and which values are bad. `width` and `height` are in columns and rows of the
    dashboard's grid, which has 24 columns. `unit` is Grafana's id of a unit.
    """
    for n, target in enumerate(targets):
        panel = panel.with_target(target.ref_id(ref(n)))
    return (
        panel.title(title)
        .description(description)
        .unit(unit)
        .datasource(DATA_SOURCE)
        .span(width)
        .height(height)
    )


def target(query: Query | str) -> prometheus.Dataquery:
    """Return a query to the selected data source; a string is one without a legend."""
    if isinstance(query, str):
        query = Query(query)
    return (
        prometheus.Dataquery()
        .expr(query.expression)
        .legend_format(query.legend)
        .datasource(DATA_SOURCE)
    )


def ref(n: int) -> str:
    """Return the letter by which Grafana identifies a query of a panel."""
    return chr(ord("A") + n)


def thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    """Return thresholds in the form that a panel needs."""
    return (
        dashboard.ThresholdsConfig()
        .mode(models.ThresholdsMode.ABSOLUTE)
        .steps([models.Threshold(value, colour) for value, colour in steps])
    )


def coloured_by_threshold() -> dashboard.FieldColor:
    """Return the setting that colours a value by its threshold."""
    return dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS)


def data_link(link: Link) -> dashboard.DashboardLink:
    """Return a link in the form that a panel needs."""
    return dashboard.DashboardLink(link.title).url(link.url)
