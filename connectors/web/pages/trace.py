"""`/trace`: what happened to one message."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from connectors.web.blocks import Section, pictured
from connectors.web.naming import view_href
from connectors.web.pages.layout import Layout
from connectors.web.parameters import views_of
from connectors.web.sources import Sources
from connectors.web.trace_blocks import blocks_of, summary_of
from connectors.web.tracing import Traces

_POLL_S = 86_400
"""A trace is made once: an open page that asked for it again would use up the budget
of its address."""


def routes(layout: Layout, sources: Sources, traces: Traces) -> list[BaseRoute]:
    """The page of a trace; see `Traces.made` for its parameters."""

    # Synchronous, so Starlette runs it in its thread pool: it waits for a process.
    def page(request: Request) -> Response:
        trace = traces.made(request)
        snapshot = sources.current()
        kind = views_of(request, snapshot).kind
        title = f"Message {words.short(trace.message_id)}"
        blocks = blocks_of(trace, "event-1")
        return layout.page(
            request,
            snapshot,
            "trace.html",
            title=title,
            poll_s=_POLL_S,
            names=kind.names,
            channel=words.short(trace.channel),
            channel_href=view_href(kind, trace.channel),
            sections=[Section("What happened", blocks, summary_of(trace))],
            pictured=pictured,
            json=f"api/v1{request.url.path}?{request.url.query}",
        )

    return [Route("/trace", page), Route("/views/{prefix}/trace", page)]
