"""The monitor's web application: all its HTTP addresses."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from connectors.web import api, planning_api
from connectors.web.crowding import LimitedRequests
from connectors.web.errors import error_handlers
from connectors.web.health import obstacle_of, probes
from connectors.web.lookups import Lookups
from connectors.web.metrics import Metrics
from connectors.web.openapi import description
from connectors.web.pages import (
    fleet,
    incidents,
    monitor,
    planning,
    runbooks,
    taps,
    trace,
    view,
)
from connectors.web.pages.layout import POLL_S, Layout
from connectors.web.sources import Sources


def create_app(sources: Sources, registry: CollectorRegistry) -> Starlette:
    """Return the application: `/metrics`, the status page, the API and the probes."""
    layout, lookups = Layout(sources.firing), Lookups(sources)

    def show_refusal(request: Request, status: int, why: str) -> Response:
        # If a trace is refused, its page must not reload every two seconds, because
        # each reload would request the trace again.
        poll_s = trace.POLL_S if request.url.path.endswith("/trace") else POLL_S
        return layout.problem(
            request, sources.current(), status, _sentence(why), poll_s
        )

    def show_failure(request: Request, status: int, why: str) -> Response:
        return layout.failure(request, _sentence(why))

    every: list[BaseRoute] = [
        Metrics(registry).route,
        *probes(lambda: obstacle_of(sources.current())),
        *api.routes(sources, lookups),
        *planning_api.routes(sources, lookups),
        *fleet.routes(layout, sources),
        *view.routes(layout, sources, lookups),
        *incidents.routes(layout, sources, lookups),
        *planning.routes(layout, sources),
        *trace.routes(layout, sources),
        *taps.routes(layout, sources),
        *monitor.routes(layout, sources),
        *runbooks.routes(layout, sources),
        layout.assets(),
    ]
    return Starlette(
        routes=[*every, description(every)],
        middleware=[Middleware(LimitedRequests)],
        exception_handlers=error_handlers(show_refusal, show_failure),
    )


def _sentence(why: str) -> str:
    return f"{why[0].upper()}{why[1:]}."
