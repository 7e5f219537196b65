"""A listening socket that leaves this process descriptors and memory."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
from contextlib import suppress
from typing import Any

_RESERVED_DESCRIPTORS = 32
"""File descriptors that clients leave to the rest of the process, which fails if it
cannot open a file or a connection."""


class PortInUse(OSError):
    """Another program listens on the port.

    Attributes:
        port: The requested port.
    """

    def __init__(self, port: int) -> None:
        super().__init__(errno.EADDRINUSE, f"port {port} is in use: choose another")
        self.port = port

    def __str__(self) -> str:
        """The message, without the error number."""
        return str(self.strerror)


class AddressUnusable(OSError):
    """The server cannot listen on the address.

    Attributes:
        host: The requested address.
    """

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(f"cannot listen on {host} ({reason}): choose an own address")
        self.host = host


def are_scarce(number: int, reserve: int) -> bool:
    """Whether fewer descriptors are left to this process than a reserve.

    The descriptor was opened last: the system gives the lowest free number, so all
    below it are open. They are not counted: that reads a directory, entry by entry, and
    Python lets other threads run after each. So a busy process would take seconds for
    it.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft != resource.RLIM_INFINITY and number >= soft - reserve


class Listener(socket.socket):
    """A listening socket that refuses connections if descriptors are scarce.

    The event loop has no connection before its TLS handshake, so the number of those
    that are not made yet is limited here; one more ends the oldest.

    Attributes:
        limit: The limit.
    """

    limit: int
    _unmade: dict[int, socket.socket]

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, or refuse it as if its client had left."""
        connection, address = super().accept()
        if are_scarce(connection.fileno(), _RESERVED_DESCRIPTORS):
            connection.close()
            # The event loop then goes on, as if the client had given up.
            raise ConnectionAbortedError
        # A closed socket may have had the same descriptor.
        self._unmade.pop(connection.fileno(), None)
        self._unmade[connection.fileno()] = connection
        if len(self._unmade) > self.limit:
            oldest = self._unmade.pop(next(iter(self._unmade)))
            # It may be closed already.
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        return connection, address

    def made(self, transport: asyncio.BaseTransport) -> None:
        """Note that a connection is made."""
        self._unmade.pop(transport.get_extra_info("socket").fileno(), None)


def listen(host: str, port: int, limit: int) -> Listener:
    """Listen on an address and a port, 0 for any free one.

    Args:
        host: Address or name.
        port: The port.
        limit: Connections that may be accepted and not made yet.

    Raises:
        PortInUse: Another program listens on the port.
        AddressUnusable: The address cannot be listened on for another reason.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(port) from error
        raise AddressUnusable(host, error.strerror or str(error)) from error
    listener = Listener(fileno=made.detach())
    listener.limit, listener._unmade = limit, {}  # noqa: SLF001 - of this module
    return listener
