"""All HTTP that the monitor offers, as one application (contract, section 3)."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.routing import Route

from connectors.web import api, health, page
from connectors.web.metrics import Metrics
from sds_core.observer.snapshot import Snapshot


def create_app(
    current: Callable[[], Snapshot],
    find_incidents: api.FindIncidents,
    registry: CollectorRegistry,
) -> Starlette:
    """The application with `/metrics`, the status page, the API and the probes.

    Args:
        current: Gives the newest snapshot; called once per request, from the thread
            of the server.
        find_incidents: Gives the incidents that a request asks for, found last first;
            called from threads of the server's own.
        registry: What `/metrics` exports, as Prometheus text or OpenMetrics by the
            request's Accept header.
    """
    return Starlette(
        routes=[
            Route("/metrics", Metrics(registry), methods=["GET"]),
            *api.routes(current, find_incidents),
            *health.routes(current),
            *page.routes(current),
        ]
    )
