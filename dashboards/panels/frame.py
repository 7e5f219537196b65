"""The parts that all dashboards share: variables, links, times and the grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from dashboards import Links
from dashboards.panels.base import DATA_SOURCE, Link, Panel
from dashboards.panels.queries import JOB, select

TAG = "sds-monitor"
"""Tag of all our dashboards, by which links select the dashboards."""

KEPT = "${__url_time_range}&var-datasource=${datasource}&var-job=${job}"
"""Parameters that a link to another dashboard keeps: times, data source and monitor."""


def assemble(
    links: Links,
    uid: str,
    title: str,
    description: str,
    sections: Mapping[str, Sequence[Panel]],
    *,
    variables: Sequence[dashboard.QueryVariable] = (),
    pages: Sequence[Link] = (),
) -> models.Dashboard:
    """Return one dashboard, with panels numbered from 1 in the given order.

    `sections` has the panels below each heading, in lines of 24 columns. An empty
    heading is not shown. `variables` appear after the variables for data source and
    monitor. `pages` are links to the status page; their URLs are paths of this page.
    """
    builder = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .time("now-6h", "now")
        .refresh("30s")
        .readonly()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(
            dashboard.DatasourceVariable("datasource")
            .label("Data source")
            .type("prometheus")
        )
        # The user selects only one monitor, because figures of two monitors of the same
        # topic must not be added.
        .with_variable(
            _query_variable(
                "job", "Monitor", "label_values(sds_monitor_build_info, job)"
            )
        )
        .with_variable(_monitor_url(links))
        .link(
            dashboard.DashboardLink("Dashboards")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .icon("dashboard")
            .keep_time(True)
            .include_vars(True)
        )
    )
    for variable in variables:
        builder = builder.with_variable(variable)
    for page in (Link("Status page", "/"), *pages):
        builder = builder.link(
            dashboard.DashboardLink(page.title)
            .type(models.DashboardLinkType.LINK)
            .icon("external link")
            .url(status_page(page.url))
            .target_blank(True)
        )
    for heading, panels in sections.items():
        if heading:
            builder = builder.with_row(dashboard.Row(heading))
        for panel in panels:
            # Copy the panel, because the builder writes the panel's place into the
            # panel.
            builder = builder.with_panel(deepcopy(panel))
    built = builder.build()
    for link in built.links or ():
        # Any placement that the builder can set would hide the links in a menu.
        link.placement = None  # type: ignore[assignment]
    for number, laid_out in enumerate(built.panels or (), start=1):
        laid_out.id_val = number
    return built


def in_lines(panels: Sequence[Panel], *numbers: int) -> list[Panel]:
    """Return panels with widths that fill lines; `numbers` has the panels per line."""
    widths = [24 // number for number in numbers for _ in range(number)]
    return [panel.span(width) for panel, width in zip(panels, widths, strict=True)]


def one_channel() -> dashboard.QueryVariable:
    """Return variable `channel`, which selects one channel."""
    return _views("Channel", "sds_channel_info")


def some_channels() -> dashboard.QueryVariable:
    """Return variable `channel`, which selects some channels; by default, all."""
    return _some(one_channel())


def some_groups() -> dashboard.QueryVariable:
    """Return variable `channel`, which selects some MVDS groups; by default, all."""
    return _some(_views("Group", "mvds_messages_total"))


def _views(label: str, metric: str) -> dashboard.QueryVariable:
    series = select(metric, JOB)
    return _query_variable("channel", label, f"label_values({series}, channel)")


def _some(variable: dashboard.QueryVariable) -> dashboard.QueryVariable:
    return (
        variable.multi(True)
        .include_all(True)
        .all_value(".+")
        .current(models.VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def status_page(path: str) -> str:
    """Return the URL of a path on the status page."""
    return f"${{monitor_url}}{path}"


def channel_page(channel: str) -> Link:
    """Return a link to a channel's page; `channel` is a variable without ``${}``."""
    url = status_page(f"/channel?id=${{{channel}:percentencode}}")
    return Link("Messages and incidents of the channel", url)


def group_page(group: str) -> Link:
    """Return a link to a group's page; see `channel_page`."""
    url = status_page(f"/views/mvds/one?id=${{{group}:percentencode}}")
    return Link("Figures and incidents of the group", url)


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
    # A text box, because a dashboard's address cannot set a constant.
    url = links.monitor_url
    return (
        dashboard.TextBoxVariable("monitor_url")
        .label("Status page")
        .default_value(url)
        .current(models.VariableOption(selected=True, text=url, value=url))
        .hide(models.VariableHide.HIDE_VARIABLE)
    )
