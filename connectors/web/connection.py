"""HTTP connections with time limits for clients.

Uvicorn closes a connection only if the connection is idle after a response. Uvicorn has
no time limit for a client that does not complete a request or does not read a response.
The option `limit_concurrency` of Uvicorn does not help. It also refuses requests for
`/healthz`, and idle clients can exclude all other clients.
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
    """Limits on the connections and the time that clients may occupy.

    Attributes:
        connections: Maximum number of open connections. If a further client connects,
            the server closes the connection whose client has been idle longest.
        watching: Maximum number of idle connections for `/metrics` and `/readyz` that
            the server does not close for a further client.
        request_s: Maximum time until a request has arrived, in seconds. For the first
            request, the time starts when the client connects. For a later request, the
            time starts with the request's first byte.
        unread_s: How long a client may read nothing of a response, in seconds. On slow
            networks, a client that reads may seem to pause for seconds, because the
            operating system buffers much.
        read_bytes_s: Minimum number of bytes per second that a client must read after
            the first `unread_s` seconds.
        idle_s: Idle time after which the server closes a connection, in seconds. The
            time is longer than the interval between scrapes or polls, so that no
            request arrives while the server closes the connection.
    """

    connections: int = 100
    watching: int = 10
    request_s: float = 10.0
    unread_s: float = 10.0
    read_bytes_s: float = 8_000.0
    idle_s: int = 75


DEFAULT_LIMITS = ClientLimits()


class LimitedConnection(H11Protocol):
    """A connection that is closed if its client violates the limits.

    Attributes:
        is_aborted: Whether `abort` was called.
        waiting_since: Time when the server last began to wait for the client, in
            seconds of the event loop's clock.
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
        # All times (`_since`) are of the event loop's clock, in seconds.
        self.waiting_since = 0.0
        self._request_since: float | None = None
        self._unread_since = 0.0
        self._unread_bytes = self._written_bytes = 0
        self._next_look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request; if too many connections are open, close an idle one."""
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
        """Process received bytes; if the request is incomplete, wait for the rest."""
        if self._request_since is None:
            self._request_since = self.loop.time()
        self._measure()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._request_since = None

    def send_400_response(self, msg: str) -> None:
        """Refuse an invalid request; if its answer has begun, only close."""
        # The body of a request may be invalid while the application answers, or after
        # that. h11 raises an error at a second answer.
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        """Start to wait for the client's next request."""
        self.waiting_since = self.loop.time()
        self._measure()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start to wait until the client reads more of the response."""
        self.waiting_since = self.loop.time()
        super().pause_writing()

    def _measure(self) -> None:
        """Count unread bytes, and bytes written since the client last had read all."""
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
        now = self.loop.time()
        self._measure()
        is_late = (
            self._request_since is not None
            and now - self._request_since >= self._limits.request_s
        )
        if is_late or self._reads_too_slowly:
            self.abort()
            return
        pause_s = min(self._limits.request_s, self._limits.unread_s) / 2
        self._next_look = self.loop.call_later(pause_s, self._look)

    def _make_room(self) -> None:
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
        """Whether the connection's last request was for `/metrics` or `/readyz`."""
        return self.scope is not None and self.scope["path"] in WATCHING

    @property
    def is_waiting(self) -> bool:
        """Whether the server waits for the client to send or to read."""
        return (
            self.cycle is None or self.cycle.response_complete or self.flow.write_paused
        )

    def abort(self) -> None:
        """Close the connection immediately, even if data is unread."""
        self.is_aborted = True
        # Without the option SO_LINGER, the operating system would continue to send
        # buffered data after the close.
        connection = self.transport.get_extra_info("socket")
        # If the client has ended a TLS connection, the connection has no socket.
        if connection is not None:
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()


def _unread_bytes(transport: Any) -> int:
    size: int = transport.get_write_buffer_size()
    # With TLS, encrypted data waits in a second transport, which has only a private
    # name in asyncio.
    tls = getattr(transport, "_ssl_protocol", None)
    below = None if tls is None else tls._transport  # noqa: SLF001 - as above
    return size + (0 if below is None else below.get_write_buffer_size())
