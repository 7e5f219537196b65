"""HTTP connections that wait only a limited time for their clients.

Uvicorn closes a connection that is idle after a response, but waits for ever for the
end of a request and for a client that does not read its response. Its own limit,
`limit_concurrency`, refuses `/healthz` too, and lets clients that wait keep others out.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from connectors.web.crowding import WATCHING

_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What clients may take from the server.

    Attributes:
        connections: Open connections. One more closes the connection that has waited
            longest for its client, so idle clients do not exclude others. A page needs
            one connection for a moment every two seconds.
        watching: Connections, of these, for `/metrics` and `/readyz`, which those for
            pages cannot end.
        request_s: Time from a connection's start, or from a request's first byte, to
            the request's end, in seconds. All requests fit into one packet.
        unread_s: Time in which a client need not read, in seconds. Slow networks take
            seconds for a part, since the system buffers much.
        read_bytes_s: Bytes that a client must read in each further second.
        idle_s: Time after which an idle connection is closed, in seconds. It is longer
            than intervals of scrapes and polls, so that no request meets a connection
            that is being closed.
    """

    connections: int = 100
    watching: int = 10
    request_s: float = 10.0
    unread_s: float = 10.0
    read_bytes_s: float = 8_000.0
    idle_s: int = 75

    @property
    def look_s(self) -> float:
        """Time between two looks at a connection, in seconds."""
        return min(self.request_s, self.unread_s) / 2


DEFAULT_LIMITS = ClientLimits()


class LimitedConnection(H11Protocol):
    """A connection of a client, which is ended if it violates the limits.

    Attributes:
        is_aborted: Whether `abort` was called.
        waiting_since: When the server last began to wait for the client: seconds of
            the event loop's clock.
    """

    def __init__(
        self,
        *,
        limits: ClientLimits,
        made: Callable[[asyncio.Transport], None],
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self._limits = limits
        self._made = made
        self.is_aborted = False
        # Times of the event loop, in seconds.
        self.waiting_since = 0.0
        self._request_since: float | None = None
        self._unread_since = 0.0
        self._unread_bytes = self._written_bytes = 0
        self._next_look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request, and close another connection if it is needed."""
        super().connection_made(transport)
        self._made(transport)
        self._request_since = self.waiting_since = self.loop.time()
        self._look()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._next_look is not None:
            self._next_look.cancel()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of the request, if a part is missing."""
        if self._request_since is None:
            self._request_since = self.loop.time()
        self._measure()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._request_since = None

    def on_response_complete(self) -> None:
        """Start to wait for the client."""
        self.waiting_since = self.loop.time()
        self._measure()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start to wait for the client in the middle of a response."""
        self.waiting_since = self.loop.time()
        super().pause_writing()

    def _measure(self) -> None:
        """Note what was written since the client had read everything."""
        if self._unread_bytes == 0:
            self._unread_since, self._written_bytes = self.loop.time(), 0
        unread = _unread_bytes(self.transport)
        self._written_bytes += max(0, unread - self._unread_bytes)
        self._unread_bytes = unread

    @property
    def _reads_too_slowly(self) -> bool:
        read = self._written_bytes - self._unread_bytes
        late_s = self.loop.time() - self._unread_since - self._limits.unread_s
        return self._unread_bytes > 0 and read <= self._limits.read_bytes_s * late_s

    def _look(self) -> None:
        """End the connection if its client is late; else look again later."""
        now = self.loop.time()
        self._measure()
        is_late = (
            self._request_since is not None
            and now - self._request_since >= self._limits.request_s
        )
        if is_late or self._reads_too_slowly:
            self.abort()
            return
        self._next_look = self.loop.call_later(self._limits.look_s, self._look)

    def _make_room(self) -> None:
        """End connections beyond the limit."""
        present = [
            one
            for one in self.connections
            if isinstance(one, LimitedConnection) and not one.is_aborted
        ]
        waiting = sorted(
            (one for one in present if one.is_waiting),
            key=lambda one: one.waiting_since,
        )
        watching = [one for one in waiting if one.is_watching]
        kept = set(watching[-self._limits.watching :])
        excess = max(0, len(present) - self._limits.connections)
        for one in [one for one in waiting if one not in kept][:excess]:
            one.abort()

    @property
    def is_watching(self) -> bool:
        """Whether its last request was for figures or the state of the process."""
        return self.scope is not None and self.scope["path"] in WATCHING

    @property
    def is_waiting(self) -> bool:
        """Whether the server has nothing to do for the client now."""
        return (
            self.cycle is None or self.cycle.response_complete or self.flow.write_paused
        )

    def abort(self) -> None:
        """End the connection now, without waiting until the client has read."""
        self.is_aborted = True
        # Otherwise the system would continue to send buffered data.
        connection = self.transport.get_extra_info("socket")
        # A connection with TLS that the client has ended has no socket.
        if connection is not None:
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()


def _unread_bytes(transport: Any) -> int:
    """Return how many bytes wait in this process until the client has read others."""
    size: int = transport.get_write_buffer_size()
    # TLS hands all that it has encrypted to the transport below, which it hides.
    tls = getattr(transport, "_ssl_protocol", None)
    below = None if tls is None else tls._transport  # noqa: SLF001 - as above
    return size + (0 if below is None else below.get_write_buffer_size())
