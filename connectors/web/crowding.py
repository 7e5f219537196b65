"""Refuses requests while too many other requests are being answered.

Uvicorn continues to process a request after its client has disconnected. A limit for
connections thus does not limit the number of requests.
"""

from __future__ import annotations

from collections import Counter

from anyio import to_thread
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connectors.web.answers import plain_refusal

MOST_REQUESTS = 50
"""Maximum number of concurrent requests for pages and the API. The limit is half of a
server's maximum number of connections. Some connections are thus always idle, and the
server can close one of them for a new client (`connectors.web.connection`)."""

MOST_SCRAPES = 10
"""Maximum number of concurrent requests for each path in `WATCHING`. The limit is
separate from `MOST_REQUESTS`, so that requests for pages never exclude Prometheus."""

THREADS = 6
"""Number of threads that create pages and answers. Starlette's default of 40 threads
would leave the event loop too little CPU time to answer even the probe."""

PROBE = "/healthz"
"""Path without a limit, because a supervisor ends processes that do not answer."""

WATCHING = frozenset({"/metrics", "/readyz"})
"""Paths that each have the limit `MOST_SCRAPES`."""

_CROWDED = "too many requests at once: try again in a few seconds"


class LimitedRequests:
    """Middleware that answers 503 if too many requests are under way."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # No lock is needed, because only the event loop's thread changes the counter.
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] == PROBE:
            await self._app(scope, receive, send)
            return
        share = scope["path"] if scope["path"] in WATCHING else ""
        if self._under_way[share] >= (MOST_SCRAPES if share else MOST_REQUESTS):
            refused = plain_refusal(Request(scope), 503, _CROWDED, {"Retry-After": "5"})
            await refused(scope, receive, send)
            return
        # Set the number of threads here, in the event loop, because each event loop has
        # its own limiter.
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        is_made = False

        def made() -> None:
            nonlocal is_made
            self._under_way[share] -= not is_made
            is_made = True

        async def send_made(message: Message) -> None:
            # The answer exists, so the request no longer counts as under way.
            # `connectors.web.connection` limits how long the client may take to read
            # the answer.
            made()
            await send(message)

        self._under_way[share] += 1
        try:
            await self._app(scope, receive, send_made)
        finally:
            made()
