"""TLS contexts: of a server whose files change, and of clients."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, Self


class NewestContext(ssl.SSLContext):
    """The context of a server that asks for the newest one at each connection.

    A certificate can thus be replaced while the server runs. `asyncio` takes nothing
    else from a server's context.
    """

    def __new__(cls, newest: Callable[[], ssl.SSLContext]) -> Self:
        """Make a context without certificates."""
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, newest: Callable[[], ssl.SSLContext]) -> None:
        self._newest = newest

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        """Begin a connection with the newest context."""
        return self._newest().wrap_bio(*arguments, **named)


def reason_of(error: OSError) -> str:
    """Return why a file of certificates or keys cannot be used."""
    if isinstance(error, ssl.SSLError):
        # An error without a reason is about PEM; a wrong password also causes it.
        return error.reason or "not to be read as PEM"
    return error.strerror or str(error)
