"""The status page: each page is complete without script; a script updates it."""

from __future__ import annotations

from typing import Any

from starlette.routing import BaseRoute

from connectors.web.lookups import Lookups
from connectors.web.pages import (
    channel,
    fleet,
    incidents,
    monitor,
    runbooks,
    taps,
    view,
)
from connectors.web.pages.layout import Layout
from connectors.web.sources import Sources
from sds_core.observer.figure_table import FigureTable


def routes(
    layout: Layout, sources: Sources, lookups: Lookups, table: FigureTable[Any]
) -> list[BaseRoute]:
    """All pages, with the figures of a table, and their assets under `/static`."""
    return [
        *fleet.routes(layout, sources, table),
        *channel.routes(layout, sources, lookups, table),
        *view.routes(layout, sources, lookups),
        *incidents.routes(layout, sources, lookups),
        *taps.routes(layout, sources, table),
        *monitor.routes(layout, sources),
        *runbooks.routes(layout, sources),
        layout.assets(),
    ]
