"""Refuses requests while too many others are being answered.

Uvicorn goes on with a request whose client is gone. So a limit of connections alone
does not bound the requests under way: clients that ask and leave would pile them up.
"""

from __future__ import annotations

from collections.abc import Callable

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

MOST_REQUESTS = 50
"""Requests under way at once: half of the connections that a server keeps, so that a
new connection never finds all others busy (`connectors.web.connection`)."""

THREADS = 6
"""Threads that make pages and answers. With the 40 of Starlette, which all compute, the
event loop would get its turn at the processor too seldom to answer even the probe."""

PROBE = "/healthz"
"""Always answered, because a supervisor ends a process that does not answer it. It
costs next to nothing."""

CROWDED = "too many requests at once: ask again in a few seconds"


def say_crowded(request: Request) -> Response:
    """The refusal as text."""
    return PlainTextResponse(f"{CROWDED}\n", status_code=503)


class LimitedRequests:
    """Middleware that answers 503 if more than `most` requests are under way.

    `refuse` makes the refusal, in the form that the request expects.
    """

    def __init__(
        self,
        app: ASGIApp,
        refuse: Callable[[Request], Response] = say_crowded,
        most: int = MOST_REQUESTS,
    ) -> None:
        self._app = app
        self._refuse = refuse
        self._most = most
        # Only the event loop's thread changes it.
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] == PROBE:
            await self._app(scope, receive, send)
            return
        if self._under_way >= self._most:
            refusal = self._refuse(Request(scope))
            refusal.headers["Retry-After"] = "5"
            await refusal(scope, receive, send)
            return
        # Each event loop has its own limit.
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        self._under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1
