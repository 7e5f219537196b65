"""What all dashboards have in common: variables, links, times and the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from dashboards.links import CHANNEL, Links
from dashboards.panels.base import DATA_SOURCE, Link, Panel
from dashboards.panels.queries import JOB, select

TAG = "sds-monitor"
"""By which the dashboards find each other."""

_KEPT = "${__url_time_range}&var-datasource=${datasource}&var-job=${job}"


@dataclass(frozen=True, slots=True)
class Section:
    """Panels below one heading, laid out in lines of 24 columns; no heading if ""."""

    heading: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Frame:
    """What one dashboard says of itself.

    Attributes:
        uid: By which it is linked.
        title: Its name.
        description: Which question it answers.
        variables: Beside data source and monitor.
        pages: Pages of the status page that say more, by title; paths.
    """

    uid: str
    title: str
    description: str
    variables: Sequence[dashboard.QueryVariable | dashboard.TextBoxVariable] = ()
    pages: Sequence[Link] = ()


def assemble(
    frame: Frame, links: Links, sections: Sequence[Section]
) -> models.Dashboard:
    """One dashboard, its panels numbered from 1 in the order given."""
    builder = (
        dashboard.Dashboard(frame.title)
        .uid(frame.uid)
        .description(frame.description)
        .tags([TAG])
        .time("now-6h", "now")
        .refresh("30s")
        .readonly()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(_data_source())
        .with_variable(_job())
        .with_variable(_monitor_url(links))
        .link(_dashboards())
    )
    for variable in frame.variables:
        builder = builder.with_variable(variable)
    for page in (Link("Status page", "/"), *frame.pages):
        builder = builder.link(
            dashboard.DashboardLink(page.title)
            .type(models.DashboardLinkType.LINK)
            .icon("external link")
            .url(status_page(page.url))
            .target_blank(True)
        )
    for section in sections:
        if section.heading:
            builder = builder.with_row(dashboard.Row(section.heading))
        for panel in section.panels:
            builder = builder.with_panel(panel)
    built = builder.build()
    for link in built.links or ():
        # The builder's only value moves links into a menu, out of sight.
        link.placement = None  # type: ignore[assignment]
    for number, laid_out in enumerate(built.panels or (), start=1):
        laid_out.id_val = number
    return built


def one_channel() -> dashboard.QueryVariable:
    """Variable `channel` of which one is chosen."""
    return _query_variable(
        "channel",
        "Channel",
        f"label_values({select('sds_channel_info', JOB)}, channel)",
    )


def some_channels() -> dashboard.QueryVariable:
    """Variable `channel` of which some or all are chosen, at first all."""
    return (
        one_channel()
        .multi(True)
        .include_all(True)
        .all_value(".+")
        .current(models.VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def status_page(path: str) -> str:
    """URL of a page of the monitor itself."""
    return f"${{monitor_url}}{path}"


def channel_link(channel: str) -> Link:
    """To the dashboard of a channel, given by a Grafana variable, without ``${}``."""
    query = f"var-channel=${{{channel}:percentencode}}&{_KEPT}"
    return Link("Open the channel's dashboard", f"/d/{CHANNEL}?{query}")


def channel_page(channel: str) -> Link:
    """To the status page of a channel, given as for `channel_link`."""
    url = status_page(f"/channel?id=${{{channel}:percentencode}}")
    return Link("Messages and incidents of the channel", url)


def _data_source() -> dashboard.DatasourceVariable:
    return (
        dashboard.DatasourceVariable("datasource")
        .label("Data source")
        .type("prometheus")
    )


def _job() -> dashboard.QueryVariable:
    # Figures of two monitors of one topic must not be added up.
    return _query_variable(
        "job", "Monitor", "label_values(sds_monitor_build_info, job)"
    )


def _query_variable(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(DATA_SOURCE)
        .query({"query": query, "refId": "StandardVariableQuery"})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
    )


def _monitor_url(links: Links) -> dashboard.TextBoxVariable:
    # Not a constant: those cannot be set by the address of the dashboard.
    url = links.monitor_url
    return (
        dashboard.TextBoxVariable("monitor_url")
        .label("Status page")
        .default_value(url)
        .current(models.VariableOption(selected=True, text=url, value=url))
        .hide(models.VariableHide.HIDE_VARIABLE)
    )


def _dashboards() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Dashboards")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .icon("dashboard")
        .keep_time(True)
        .include_vars(True)
    )
