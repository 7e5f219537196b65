"""`/metrics`: Prometheus text or OpenMetrics, as the request prefers."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, make_asgi_app
from starlette.types import Receive, Scope, Send


class Metrics:
    """The client library's application, which negotiates format and compression.

    A class, because Starlette would call a plain function with a request.

    Args:
        registry: Metrics to export.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._app = make_asgi_app(registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one scrape."""
        await self._app(scope, receive, send)
