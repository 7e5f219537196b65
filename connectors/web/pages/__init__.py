"""The status page, view by view: whole without script, kept up to date by one."""

from __future__ import annotations

from starlette.routing import BaseRoute

from connectors.web.lookups import Lookups
from connectors.web.pages import channel, fleet, incidents, monitor, runbooks, taps
from connectors.web.pages.layout import Layout
from connectors.web.sources import Sources


def routes(layout: Layout, sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """All views and their assets under `/static`."""
    return [
        *fleet.routes(layout, sources),
        *channel.routes(layout, sources, lookups),
        *incidents.routes(layout, sources, lookups),
        *taps.routes(layout, sources),
        *monitor.routes(layout, sources),
        *runbooks.routes(layout, sources),
        layout.assets(),
    ]
