"""Plain connections to a server under test, read or left unread."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from starlette.types import ASGIApp

from connectors.web.connection import ClientLimits
from connectors.web.server import WebServer

Connect = Callable[[], socket.socket]


@contextmanager
def served(app: ASGIApp, limits: ClientLimits) -> Iterator[Connect]:
    """Serve an application; gives a function that connects."""
    with (
        WebServer(app, port=0, limits=limits) as server,
        connecting(server.url) as connect,
    ):
        yield connect


@contextmanager
def connecting(url: str) -> Iterator[Connect]:
    """Give a function that connects to a server; all are closed at the end."""
    port = int(url.rpartition(":")[2])
    with ExitStack() as connections:

        def connect() -> socket.socket:
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            return connections.enter_context(connection)

        yield connect


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has ended a connection, read or unread."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(0))
