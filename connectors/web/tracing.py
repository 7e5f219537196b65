"""Traces for page and API: few at a time, and nothing is kept.

A trace reads Kafka and takes seconds in a process of its own, so clients that ask again
and again are refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters
from connectors.web.answers import answer
from connectors.web.lookups import read_figures
from connectors.web.naming import label_of
from connectors.web.refusals import TracesBusy, WrongParameter
from connectors.web.sources import Sources, TraceQuestion
from sds_core.trace.document import trace_object
from sds_core.trace.trace import Trace

MOST_AT_ONCE = 2
"""Traces under way, of all clients: each takes one of the threads of requests."""


class Traces:
    """Makes traces, one at a time for each address and `MOST_AT_ONCE` in all.

    Args:
        sources: Makes them.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._lock = threading.Lock()
        self._addresses: set[str] = set()

    def made(self, request: Request) -> Trace:
        """Return the trace that a request asks for.

        Query parameters: a view or its `key`, `message`, and `since`, which is about
        when the message appeared, Unix ms.

        Raises:
            Refusal: There is none, or others are being made.
        """
        given, snapshot = request.query_params, read_figures(self._sources)
        views = parameters.views_of(request, snapshot)
        label = label_of(views.kind)
        name = parameters.view(given, label, views.totals)
        for parameter, value in ((label, name), ("message", given.get("message"))):
            if not value:
                raise WrongParameter(parameter, "an id", value or "")
        question = TraceQuestion(
            views.kind.prefix,
            name or "",
            given["message"],
            parameters.number(given, "since"),
            snapshot.observer,
        )
        with self._turn(request.client.host if request.client else ""):
            return self._sources.trace(question)

    @contextmanager
    def _turn(self, address: str) -> Iterator[None]:
        with self._lock:
            known = self._addresses
            if address in known or len(known) >= MOST_AT_ONCE:
                raise TracesBusy
            known.add(address)
        try:
            yield
        finally:
            with self._lock:
                known.discard(address)


def routes(traces: Traces) -> list[BaseRoute]:
    """The trace of a message as JSON, as the command `trace` prints it."""

    # Synchronous, so Starlette runs it in its thread pool: it waits for a process.
    def trace(request: Request) -> Response:
        return answer(trace_object(traces.made(request)))

    return [Route(f"/api/v1/{path}trace", trace) for path in ("", "views/{prefix}/")]
