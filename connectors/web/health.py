"""Probes of the monitor and of each other process that has metrics."""

from __future__ import annotations

from collections.abc import Callable

from anyio import CapacityLimiter, to_thread
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from connectors.web import words
from connectors.web.answers import plain_answer
from connectors.web.crowding import LimitedRequests
from connectors.web.door import ANONYMOUS
from connectors.web.errors import error_handlers
from connectors.web.metrics import Metrics
from connectors.web.openapi import description
from connectors.web.operations import Operation
from connectors.web.refusals import NotReady
from sds_core.observer.snapshot import Snapshot
from sds_core.text import one_line


def probes(obstacle: Callable[[], str]) -> list[BaseRoute]:
    """Return the probes; `obstacle` returns why the process is not ready, or ``""``."""

    async def healthz(request: Request) -> Response:
        """Answer with status 200 while the process runs."""
        return plain_answer("ok")

    # Pages may use all threads of Starlette, so `readyz` has a thread of its own.
    thread = CapacityLimiter(1)

    async def readyz(request: Request) -> Response:
        """Answer with status 200 if the figures are complete and fresh, else with 503.

        If the status is 503, the text contains the reason. If a login is required but
        the request contains no login, the text omits the reason.
        """
        # Run `obstacle` in a thread: `obstacle` may read all channels, which would
        # block the event loop.
        if why := await to_thread.run_sync(obstacle, limiter=thread):
            shown = "" if ANONYMOUS in request.scope else f": {why}"
            return plain_answer(f"not ready{shown}", 503)
        return plain_answer("ready")

    return [
        Operation("/healthz", healthz, is_open=True),
        Operation("/readyz", readyz, NotReady),
    ]


def metrics_app(
    collector: Collector, obstacle: Callable[[], str], *routes: BaseRoute
) -> Starlette:
    """Return an application with `/metrics`, probes and further routes."""
    registry = CollectorRegistry()
    registry.register(collector)
    every = [Metrics(registry).route, *probes(obstacle), *routes]
    return Starlette(
        routes=[*every, description(every)],
        middleware=[Middleware(LimitedRequests)],
        exception_handlers=error_handlers(),
    )


def obstacle_of(snapshot: Snapshot) -> str:
    """Return why the figures are not complete and fresh; empty if they are."""
    kafka = snapshot.job.kafka
    if kafka.is_stale:
        why = f" ({one_line(kafka.cause)})" if kafka.cause else ""
        return f"{words.no_answer(kafka)}{why}"
    if missing := snapshot.job.missing_topic:
        return f"{words.topic_missing(missing)}: {words.TOPIC_REMEDY}"
    if snapshot.job.error:
        return f"the query stopped: {one_line(snapshot.job.error)}"
    if not snapshot.primed and kafka.is_awaited:
        return "Kafka has not answered yet"
    if not snapshot.primed:
        return "the monitor has not read the totals of its checkpoint yet"
    if not snapshot.job.running:
        return "the query is not running"
    return ""
