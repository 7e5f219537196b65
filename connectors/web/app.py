"""All HTTP that the monitor offers, as one application (contract, section 3)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.routing import Route

from connectors.web import api, health, page
from connectors.web.metrics import Metrics
from connectors.web.sources import Sources


def create_app(sources: Sources, registry: CollectorRegistry) -> Starlette:
    """The application with `/metrics`, the status page, the API and the probes.

    Args:
        sources: Where the pages and the API get what they show.
        registry: What `/metrics` exports, as Prometheus text or OpenMetrics by the
            request's Accept header.
    """
    return Starlette(
        routes=[
            Route("/metrics", Metrics(registry), methods=["GET"]),
            *api.routes(sources.current, sources.find_incidents),
            *health.routes(sources.current),
            *page.routes(sources.current),
        ]
    )
