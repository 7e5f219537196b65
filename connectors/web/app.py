"""All HTTP that the monitor offers, as one application (contract, section 3)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from connectors.web import api, health, pages
from connectors.web.metrics import Metrics
from connectors.web.pages.layout import Layout
from connectors.web.parameters import WrongParameter
from connectors.web.sources import Sources


def create_app(sources: Sources, registry: CollectorRegistry) -> Starlette:
    """The application with `/metrics`, the status page, the API and the probes.

    Args:
        sources: Where the pages and the API get what they show.
        registry: What `/metrics` exports, as Prometheus text or OpenMetrics by the
            request's Accept header.
    """
    layout = Layout()

    async def refuse(request: Request, error: Exception) -> Response:
        """Say in one line what is wrong with a query parameter."""
        if request.url.path.startswith("/api/"):
            return api.refusal(400, str(error))
        sentence = str(error)
        return layout.problem(
            request, sources.current(), 400, f"{sentence[0].upper()}{sentence[1:]}."
        )

    return Starlette(
        routes=[
            Route("/metrics", Metrics(registry), methods=["GET"]),
            *api.routes(sources),
            *health.routes(sources.current),
            *pages.routes(layout, sources),
        ],
        exception_handlers={WrongParameter: refuse},
    )
