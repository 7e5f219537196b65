"""The status page, view by view: whole without script, kept up to date by one."""

from __future__ import annotations

from starlette.routing import BaseRoute

from connectors.web.pages import channel, fleet, incidents, monitor, runbooks, taps
from connectors.web.pages.layout import Layout
from connectors.web.sources import Sources


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """All views and their assets under `/static`."""
    return [
        *fleet.routes(layout, sources),
        *channel.routes(layout, sources),
        *incidents.routes(layout, sources),
        *taps.routes(layout, sources),
        *monitor.routes(layout, sources),
        *runbooks.routes(layout, sources),
        layout.assets(),
    ]
