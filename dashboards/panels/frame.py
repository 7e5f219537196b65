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
"""Tag of all our dashboards. A link with this tag lists all dashboards that have it."""

KEPT = "${__url_time_range}&var-datasource=${datasource}&var-job=${job}"
"""URL parameters that a link copies from one dashboard to another: the time range, the
data source and the monitor."""


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

    `sections` maps each heading to the panels below it. These panels fill lines of 24
    columns. An empty heading is not shown. `variables` appear after the variables for
    data source and monitor. `pages` are links to pages of the monitor; their URLs are
    paths, such as "/incidents".
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
        # The user selects only one monitor. Otherwise, panels would add the figures of
        # two monitors that read the same topic.
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
            # Add a copy, because the builder writes the panel's position into the
            # object.
            builder = builder.with_panel(deepcopy(panel))
    built = builder.build()
    for link in built.links or ():
        # The builder always sets a placement, which would hide the links in a menu.
        link.placement = None  # type: ignore[assignment]
    for number, laid_out in enumerate(built.panels or (), start=1):
        laid_out.id_val = number
    return built


def in_lines(panels: Sequence[Panel], *numbers: int) -> list[Panel]:
    """Return the panels with new widths, so that the panels of a line fill the line.

    `numbers` has the number of panels in each line.
    """
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
    """Return a link to a channel's page.

    `channel` is the name of the Grafana variable that has the id, without ``${}``.
    """
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
    # The variable is a text box, because the URL of a dashboard can set a text box, but
    # cannot set a constant.
    url = links.monitor_url
    return (
        dashboard.TextBoxVariable("monitor_url")
        .label("Status page")
        .default_value(url)
        .current(models.VariableOption(selected=True, text=url, value=url))
        .hide(models.VariableHide.HIDE_VARIABLE)
    )
