"""Serves an ASGI application from a separate thread."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from dataclasses import replace
from functools import partial
from typing import Any, Self

import uvicorn
from starlette.types import ASGIApp

from connectors.sockets.listener import listen
from connectors.sockets.tls import NewestContext
from connectors.web.access import OPEN, Access
from connectors.web.connection import DEFAULT_LIMITS, ClientLimits, LimitedConnection
from connectors.web.door import Door

_STOP_SECONDS = 2
"""If the server stops, running requests may continue for this time, seconds. A scrape
by Prometheus takes less time."""

_SWITCH_S = 0.0005
"""Python's switch interval, seconds: how long a thread runs while other threads wait.

After each system call, the event loop may wait this time for each thread that creates a
page. With many clients and Python's default of 5 ms, the event loop waited for a
minute.
"""

_REACHED_AT = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
"""Wildcard address to listen on -> address for requests from the same machine."""


class WebServer:
    """Serves an application over HTTP or HTTPS from `start` to `stop`.

    The server is also a context manager. A stopped server can be started again. If the
    port is 0, the system selects a free port.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str = "127.0.0.1",
        port: int = 9108,
        access: Access = OPEN,
        limits: ClientLimits = DEFAULT_LIMITS,
    ) -> None:
        self._app = Door(app, replace(access, hosts=(host, *access.hosts)))
        self._access = access
        self._host = host
        self._port = port
        self._limits = limits
        self._running: tuple[uvicorn.Server, threading.Thread, int] | None = None

    @property
    def url(self) -> str:
        """URL of the running server on this machine, without a slash at its end.

        Raises:
            RuntimeError: The server is not running.
        """
        if self._running is None:
            raise RuntimeError("the server is not running")
        _, _, port = self._running
        host = _REACHED_AT.get(self._host, self._host)
        scheme = "http" if self._access.tls is None else "https"
        place = f"[{host}]" if ":" in host else host
        return f"{scheme}://{place}:{port}"

    def start(self) -> None:
        """Start the server. When this call returns, the server answers requests.

        Raises:
            PortInUse: Another program listens on the port.
            AddressUnusable: The server cannot listen on the address, for another reason
                than a used port.
            RuntimeError: The server is running already.
        """
        if self._running is not None:
            message = f"the server is running already at {self.url}"
            raise RuntimeError(message)
        listener = listen(self._host, self._port, self._limits.connections)
        # Uvicorn expects a protocol class, but only calls it. So a partial function is
        # enough.
        connection: Any = partial(
            LimitedConnection, limits=self._limits, made=listener.made
        )
        tls = self._access.tls
        # The server's thread is not the main thread, so Uvicorn installs no signal
        # handlers. The main program handles signals and calls `stop`.
        server = uvicorn.Server(
            uvicorn.Config(
                self._app,
                loop="asyncio",
                http=connection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                # Ignore proxy headers: with one, any local program could pretend that
                # its requests come from another client address.
                proxy_headers=False,
                timeout_graceful_shutdown=_STOP_SECONDS,
                timeout_keep_alive=self._limits.idle_s,
                ssl_context_factory=tls and (lambda *_: NewestContext(tls)),
            )
        )
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_S))
        logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
        thread = threading.Thread(
            target=server.run, args=([listener],), name="web-server", daemon=True
        )
        self._running = (server, thread, listener.getsockname()[1])
        thread.start()
        while not server.started:
            thread.join(0.01)
            if not thread.is_alive():
                self._running = None
                listener.close()
                raise RuntimeError("the web server ended during startup: see its log")

    def stop(self) -> None:
        """Stop the server if it runs; running requests get two seconds to end."""
        if self._running is None:
            return
        server, thread, _ = self._running
        server.should_exit = True
        thread.join()
        self._running = None

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    # `stop` cancels requests that do not end in time. Do not log this as an error.
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError)
