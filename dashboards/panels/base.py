"""The parts that panels of all kinds have: text, queries, links, thresholds."""

from __future__ import annotations

import re
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

from dashboards.panels import queries
from dashboards.panels.colours import Steps

DATA_SOURCE = common_models.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""Data source that the user has selected on the dashboard."""

Panel = (
    stat.Panel | timeseries.Panel | heatmap.Panel | statetimeline.Panel | table.Panel
)
P = TypeVar(
    "P", stat.Panel, timeseries.Panel, heatmap.Panel, statetimeline.Panel, table.Panel
)


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and the legend of its series.

    Attributes:
        is_per_step: Whether the values are counts per step of a graph.
    """

    expression: str
    legend: str = ""
    is_per_step: bool = False


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
    """Return the panel with the parts that every panel must have.

    The title is unique within the dashboard. The description says what the panel shows,
    and which values are bad. A dashboard has a grid of 24 columns; width and height
    count its columns and rows. The unit is Grafana's id of a unit.
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
    """Return a query of the selected data source; a bare expression has no legend."""
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
    """Return steps in the form that a panel needs."""
    return (
        dashboard.ThresholdsConfig()
        .mode(models.ThresholdsMode.ABSOLUTE)
        .steps([models.Threshold(value, colour) for value, colour in steps])
    )


def coloured_by_threshold() -> dashboard.FieldColor:
    """Return the setting that colours a value by its step."""
    return dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS)


def data_link(link: Link) -> dashboard.DashboardLink:
    """Return a link in the form that a panel needs."""
    return dashboard.DashboardLink(link.title).url(link.url)


def per_second(metric: str, scope: str, legend: str, **labels: str) -> Query:
    """Return a query: the rate of a counter, summed by the labels in the legend."""
    return Query(queries.rate(metric, scope, *_labels(legend), **labels), legend)


def per_step(metric: str, scope: str, legend: str, **labels: str) -> Query:
    """Return a query: growth of a counter per step of a graph, by the given labels."""
    grown = queries.increase(metric, scope, *_labels(legend), **labels)
    return Query(grown, legend, is_per_step=True)


def now(metric: str, scope: str, legend: str, **labels: str) -> Query:
    """Return a query: the maximum of a gauge, by the labels in the legend."""
    return Query(queries.greatest(metric, scope, *_labels(legend), **labels), legend)


def sums(metric: str, scope: str, legend: str, **labels: str) -> Query:
    """Return a query: the sum of a gauge, by the labels in the legend."""
    return Query(queries.total(metric, scope, *_labels(legend), **labels), legend)


def _labels(legend: str) -> list[str]:
    return re.findall(r"{{(\w+)}}", legend)


def quantiles(histogram: str, scope: str, **labels: str) -> list[Query]:
    """Return queries: median, 95 % and 99 % quantile of a histogram."""
    return [
        Query(
            queries.quantile(q, histogram, scope, **labels),
            " ".join([f"p{q * 100:g}", *labels.values()]),
        )
        for q in (0.5, 0.95, 0.99)
    ]
