"""The monitor's web application: all its HTTP addresses."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from connectors.web import api, planning_api
from connectors.web.answers import is_api, refusal
from connectors.web.crowding import LimitedRequests
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
from connectors.web.refusals import Refusal
from connectors.web.sources import Sources

_HTTP = {
    404: "nothing was found at this address",
    405: "this address accepts only GET requests",
}
_UNFORESEEN = "the monitor failed to answer: see the error in its log"


def create_app(sources: Sources, registry: CollectorRegistry) -> Starlette:
    """Return the application: `/metrics`, the status page, the API and the probes."""
    layout, lookups = Layout(sources.firing), Lookups(sources)

    def refuse(request: Request, error: Exception) -> Response:
        match error:
            case Refusal():
                status, why, values = error.status, str(error), error.values
            case HTTPException():
                status, values = error.status_code, {}
                why = _HTTP.get(status, error.detail)
        if is_api(request):
            answer = refusal(status, why, values)
        else:
            # If a trace is refused, its page must not reload every two seconds, because
            # each reload would request the trace again.
            poll_s = trace.POLL_S if request.url.path.endswith("/trace") else POLL_S
            answer = layout.problem(
                request, sources.current(), status, _sentence(why), poll_s
            )
        answer.headers.update(getattr(error, "headers", None) or {})
        return answer

    def fail(request: Request, _: Exception) -> Response:
        if is_api(request):
            answer = refusal(500, _UNFORESEEN, {})
        else:
            answer = layout.failure(request, _sentence(_UNFORESEEN))
        # After an unforeseen error, the server closes the connection. Because of this
        # header, the client does not reuse the connection.
        answer.headers["Connection"] = "close"
        return answer

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
        exception_handlers={Refusal: refuse, HTTPException: refuse, Exception: fail},
    )


def _sentence(why: str) -> str:
    return f"{why[0].upper()}{why[1:]}."
