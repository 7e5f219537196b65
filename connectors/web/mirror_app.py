"""All HTTP that a mirror offers."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from connectors.prometheus.collector import MirrorCollector
from connectors.web.crowding import LimitedRequests
from connectors.web.metrics import Metrics
from sds_core.mirror.figures import MirrorFigures


def create_mirror_app(figures: MirrorFigures) -> Starlette:
    """The application with `/metrics` and the probes.

    Args:
        figures: Figures of the mirror, which keeps changing them.
    """
    registry = CollectorRegistry()
    registry.register(MirrorCollector(figures))

    async def healthz(request: Request) -> Response:
        """200 as long as the process answers."""
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        """200 while a node answers and the spool is not full, else 503."""
        obstacle = _obstacle(figures)
        if obstacle:
            return PlainTextResponse(f"not ready: {obstacle}\n", status_code=503)
        return PlainTextResponse("ready\n")

    return Starlette(
        routes=[
            Route("/metrics", Metrics(registry).answer),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
        ],
        middleware=[Middleware(LimitedRequests)],
    )


def _obstacle(figures: MirrorFigures) -> str:
    if figures.is_paused:
        return "the spool is full, since Kafka does not take its records"
    if not any(node.is_up for node in figures.nodes.values()):
        return "no node answers"
    return ""
