"""`/trace` and `/api/v1/trace`: what happened to one message.

To create a trace, a separate process reads Kafka for some seconds. The server creates
at most `MOST_AT_ONCE` traces at a time. Meanwhile, it refuses further requests for a
trace. It stores no trace.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from connectors.web.blocks import Section, pictured
from connectors.web.lookups import read_figures
from connectors.web.naming import label_of, path_of, view_href
from connectors.web.operations import of_views
from connectors.web.pages.layout import Layout
from connectors.web.parameters import TraceQuery, query_of, read_query, views_of
from connectors.web.refusals import NoChannel, NoTrace, TraceFailed, TracesBusy
from connectors.web.sources import Sources, TraceQuestion
from connectors.web.trace_blocks import blocks_of, summary_of
from sds_core.trace.document import TraceObject, trace_object
from sds_core.trace.trace import Trace

MOST_AT_ONCE = 2
"""Maximum number of concurrent traces. Each trace occupies one of the threads that
answer requests."""

POLL_S = 86_400
"""Interval of updates, s. It is one day, because each update of an open page would
create the trace again."""


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """Return the routes of a trace as a page and as JSON."""
    lock = threading.Lock()
    addresses: set[str] = set()

    @contextmanager
    def turn(address: str) -> Iterator[None]:
        # At any time, allow one trace per client address, and at most `MOST_AT_ONCE`
        # in total.
        with lock:
            if address in addresses or len(addresses) >= MOST_AT_ONCE:
                raise TracesBusy
            addresses.add(address)
        try:
            yield
        finally:
            with lock:
                addresses.discard(address)

    def made(request: Request, query: TraceQuery) -> Trace:
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        name = query.find(views.totals)
        if not name:
            raise NoChannel("id", "")
        question = TraceQuestion(
            views.kind.prefix, name, query.message, query.since, snapshot.observer
        )
        with turn(request.client.host if request.client else ""):
            return sources.trace(question)

    def page(request: Request) -> Response:
        given, snapshot = request.query_params, read_figures(sources)
        kind = views_of(request, snapshot).kind
        label = label_of(kind)
        trace = made(request, read_query(TraceQuery, given, label, strict=False))
        for_api = query_of(TraceQuery, given, label)
        return layout.page(
            request,
            snapshot,
            "trace.html",
            title=f"Message {words.short(trace.message_id)}",
            poll_s=POLL_S,
            names=kind.names,
            channel=words.short(trace.channel),
            channel_href=view_href(kind, trace.channel),
            sections=[
                Section("What happened", blocks_of(trace, "event-1"), summary_of(trace))
            ],
            pictured=pictured,
            json=f"api/v1/{path_of(kind, 'trace')}?{for_api}",
        )

    def trace(request: Request, query: TraceQuery) -> TraceObject:
        """Return what happened to a message.

        A trace takes several seconds. Each client can request one trace at a time.
        """
        return trace_object(made(request, query))

    return [
        Route("/trace", page),
        Route("/views/{prefix}/trace", page),
        *of_views("trace", trace, NoTrace, TracesBusy, TraceFailed),
    ]
