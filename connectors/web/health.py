"""Probes: whether the process runs, and whether its figures are complete."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from sds_core.observer.snapshot import Snapshot
from sds_core.text import one_line


def routes(current: Callable[[], Snapshot]) -> list[BaseRoute]:
    """`/healthz` and `/readyz`.

    Args:
        current: Returns the newest snapshot.
    """

    async def healthz(request: Request) -> Response:
        """200 as long as the process answers."""
        return PlainTextResponse("ok\n")

    # Synchronous, so Starlette runs it in its thread pool: it reads all channels.
    def readyz(request: Request) -> Response:
        """200 while the query runs and its figures are complete and fresh, else 503."""
        obstacle = _obstacle(current())
        if obstacle:
            return PlainTextResponse(f"not ready: {obstacle}\n", status_code=503)
        return PlainTextResponse("ready\n")

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


def _obstacle(snapshot: Snapshot) -> str:
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
        return "the totals of the checkpoint have not been read yet"
    if not snapshot.job.running:
        return "the query is not running"
    return ""
