"""A listening socket that limits descriptors and memory for connections."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
from collections import Counter
from contextlib import suppress
from typing import Any

_RESERVED_DESCRIPTORS = 32
"""Number of file descriptors that connections leave to the rest of the process."""


class PortInUse(OSError):
    """Another program listens on `port`."""

    def __init__(self, port: int) -> None:
        super().__init__(errno.EADDRINUSE, f"port {port} is in use: choose another")
        self.port = port

    def __str__(self) -> str:
        """The message, without the error number."""
        return str(self.strerror)


class AddressUnusable(OSError):
    """The server cannot listen on `host`."""

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(
            f"cannot listen on {host} ({reason}): choose an address of this machine"
        )
        self.host = host


def are_scarce(number: int, reserve: int) -> bool:
    """Return whether fewer than `reserve` descriptors are free.

    `number` is the descriptor that was opened last. The system assigns the lowest free
    number, so all lower numbers are open. The open descriptors are not counted: in a
    busy process, this would take seconds, because Python lets other threads run after
    each entry of `/proc/self/fd`.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft != resource.RLIM_INFINITY and number >= soft - reserve


class Listener(socket.socket):
    """A listening socket that refuses connections if descriptors are scarce.

    The event loop does not report a connection before its TLS handshake ends, so this
    socket counts the connections whose handshake has not ended. `limit` is their
    maximum number. If one more arrives, the address that has most of these connections
    loses its oldest one.
    """

    limit: int
    _unmade: dict[int, tuple[socket.socket, str]]

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, or refuse it as if its client had disconnected."""
        connection, address = super().accept()
        if are_scarce(connection.fileno(), _RESERVED_DESCRIPTORS):
            connection.close()
            raise ConnectionAbortedError
        # Remove the entry of an earlier connection, now closed, that had the same
        # descriptor. The new entry thus becomes the last in the dictionary.
        self._unmade.pop(connection.fileno(), None)
        self._unmade[connection.fileno()] = connection, address[0]
        if len(self._unmade) > self.limit:
            # Remove closed connections, because they do not count.
            self._unmade = {
                number: unmade
                for number, unmade in self._unmade.items()
                if unmade[0].fileno() == number
            }
        if len(self._unmade) > self.limit:
            self._end_oldest()
        return connection, address

    def _end_oldest(self) -> None:
        of_address = Counter(address for _, address in self._unmade.values())
        busiest = max(of_address, key=of_address.__getitem__)
        oldest = next(n for n, (_, a) in self._unmade.items() if a == busiest)
        connection, _ = self._unmade.pop(oldest)
        # The client may have closed the connection already.
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def made(self, transport: asyncio.BaseTransport) -> None:
        """Stop counting a connection, because its handshake has ended."""
        # A broken TLS connection has no socket.
        if (connection := transport.get_extra_info("socket")) is not None:
            self._unmade.pop(connection.fileno(), None)


def listen(host: str, port: int, limit: int) -> Listener:
    """Listen on an address and a port, 0 for any free port.

    For `limit` see `Listener`.

    Raises:
        PortInUse: Another program listens on the port.
        AddressUnusable: The server cannot listen on the address for another reason.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # `create_server` would raise a `TypeError`, and leave a socket open.
        host.encode("idna")
        made = socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(port) from error
        raise AddressUnusable(host, error.strerror or str(error)) from error
    except UnicodeError as error:
        raise AddressUnusable(host, str(error)) from error
    listener = Listener(fileno=made.detach())
    listener.limit, listener._unmade = limit, {}  # noqa: SLF001 - of this module
    return listener
