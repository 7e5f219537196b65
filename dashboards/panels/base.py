"""What panels of all kinds have: text, queries, links, thresholds."""

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

DATA_SOURCE = common_models.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""The one that is chosen on the dashboard."""

Panel = (
    stat.Panel | timeseries.Panel | heatmap.Panel | statetimeline.Panel | table.Panel
)
P = TypeVar(
    "P",
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
class Link:
    """A way from a value to a page."""

    title: str
    url: str


def finished(
    panel: P,
    text: Text,
    targets: Sequence[prometheus.Dataquery],
    width: int,
    height: int = 8,
) -> P:
    """With its text, its queries and its place, as every panel must have them."""
    for n, target in enumerate(targets):
        panel = panel.with_target(target.ref_id(ref(n)))
    return (
        panel.title(text.title)
        .description(text.description)
        .unit(text.unit)
        .datasource(DATA_SOURCE)
        .span(width)
        .height(height)
    )


def target(query: Query) -> prometheus.Dataquery:
    """A query of the data source that is chosen on the dashboard."""
    return (
        prometheus.Dataquery()
        .expr(query.expression)
        .legend_format(query.legend)
        .datasource(DATA_SOURCE)
    )


def ref(n: int) -> str:
    """The letter by which Grafana tells a panel's queries apart."""
    return chr(ord("A") + n)


def thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    """Steps in the form of a panel."""
    return (
        dashboard.ThresholdsConfig()
        .mode(models.ThresholdsMode.ABSOLUTE)
        .steps([models.Threshold(value, colour) for value, colour in steps])
    )


def coloured_by_threshold() -> dashboard.FieldColor:
    """The colour of the step in which a value lies."""
    return dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS)


def data_link(link: Link) -> dashboard.DashboardLink:
    """A link in the form of a panel."""
    return dashboard.DashboardLink(link.title).url(link.url)
