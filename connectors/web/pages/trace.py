"""`/trace` and `/api/v1/trace`: what happened to one message.

A trace reads Kafka and takes seconds in a process of its own. So only few are made at a
time, none is kept, and clients that ask for more are refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters, words
from connectors.web.answers import answer
from connectors.web.blocks import Section, pictured
from connectors.web.lookups import read_figures
from connectors.web.naming import label_of, view_href
from connectors.web.pages.layout import Layout
from connectors.web.refusals import TracesBusy, WrongParameter
from connectors.web.sources import Sources, TraceQuestion
from connectors.web.trace_blocks import blocks_of, summary_of
from sds_core.trace.document import trace_object

MOST_AT_ONCE = 2
"""Traces under way, of all clients: each takes one of the threads of requests."""

POLL_S = 86_400
"""A page that asked for its trace again would use up the budget of its address."""


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """Page and JSON of a trace.

    Query parameters: a view or its `key`, `message`, and `since`, which is about when
    the message appeared, Unix ms.
    """
    turns = _Turns()

    # Synchronous, so Starlette runs it in its thread pool: it waits for a process.
    def trace(request: Request) -> Response:
        given, snapshot = request.query_params, read_figures(sources)
        views = parameters.views_of(request, snapshot)
        kind, label = views.kind, label_of(views.kind)
        name = parameters.view(given, label, views.totals)
        for parameter, value in ((label, name), ("message", given.get("message"))):
            if not value:
                raise WrongParameter(parameter, "an id", value or "")
        question = TraceQuestion(
            kind.prefix,
            name or "",
            given["message"],
            parameters.number(given, "since"),
            snapshot.observer,
        )
        with turns.turn(request.client.host if request.client else ""):
            made = sources.trace(question)
            path = request.url.path
            if path.startswith("/api/"):
                return answer(trace_object(made))
            blocks = blocks_of(made, "event-1")
            return layout.page(
                request,
                snapshot,
                "trace.html",
                title=f"Message {words.short(made.message_id)}",
                poll_s=POLL_S,
                names=kind.names,
                channel=words.short(made.channel),
                channel_href=view_href(kind, made.channel),
                sections=[Section("What happened", blocks, summary_of(made))],
                pictured=pictured,
                json=f"api/v1{path}?{request.url.query}",
            )

    paths = ("/trace", "/views/{prefix}/trace")
    return [Route(f"{api}{path}", trace) for api in ("", "/api/v1") for path in paths]


class _Turns:
    """One turn at a time for each address, and `MOST_AT_ONCE` in all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._addresses: set[str] = set()

    @contextmanager
    def turn(self, address: str) -> Iterator[None]:
        """Take a turn while the block runs.

        Raises:
            TracesBusy: There is none.
        """
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
