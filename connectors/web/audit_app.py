"""All HTTP that a repeated audit offers."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from connectors.prometheus.collector import AuditCollector
from connectors.web.answers import answer
from connectors.web.crowding import LimitedRequests
from connectors.web.metrics import Metrics
from sds_core.audit.figures import AuditFigures

NEWEST = "/api/v1/audit"
"""Path of the newest result; `sds-monitor run --audit` reads it."""


def create_audit_app(figures: AuditFigures) -> Starlette:
    """The application with `/metrics`, the newest result and the probes.

    Args:
        figures: Figures of the audit, which keeps changing them.
    """
    registry = CollectorRegistry()
    registry.register(AuditCollector(figures))

    async def healthz(request: Request) -> Response:
        """200 as long as the process answers."""
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        """200 once an audit has ended, and while the newest one did not fail."""
        if figures.result is None or figures.error:
            obstacle = figures.error or "the first audit has not ended"
            return PlainTextResponse(f"not ready: {obstacle}\n", status_code=503)
        return PlainTextResponse("ready\n")

    async def newest(request: Request) -> Response:
        """Return the newest result; null before there is one."""
        result = figures.result
        if result is None:
            return answer({"audit": None, "error": figures.error})
        return answer(
            {
                "audit": {
                    "ended_ms": figures.result_ms,
                    "is_complete": result.is_complete,
                    "missing_here": len(result.missing_here) - result.remirrored,
                    "missing_there": len(result.missing_there),
                    "missing_before_begin": result.missing_before_begin,
                    "mirror_begin_ms": result.mirror_begin_ms,
                    "newest_missing_ms": dict(result.newest_missing_ms),
                },
                "error": figures.error,
            }
        )

    return Starlette(
        routes=[
            Route("/metrics", Metrics(registry).answer),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route(NEWEST, newest),
        ],
        middleware=[Middleware(LimitedRequests)],
    )
