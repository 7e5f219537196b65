"""Addresses of peers."""

from __future__ import annotations

from typing import NamedTuple


class BadAddress(ValueError):
    """A text is no HOST:PORT."""


class Address(NamedTuple):
    """Host and TCP port.

    In `host`, an IPv6 address has no brackets. For a server, port 0 means any free
    port.
    """

    host: str
    port: int

    def __str__(self) -> str:
        """Return HOST:PORT."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class PeerUnreachable(OSError):
    """The peer is unreachable, or every connection to the peer broke."""

    def __init__(self, address: Address, detail: str) -> None:
        super().__init__(
            f"{address} cannot be reached ({detail}): check that `sds-monitor audit "
            "serve` runs there, and that the port is open"
        )


def parse_address(text: str) -> Address:
    """Parse an address of the form ``HOST:PORT`` or ``[IPV6]:PORT``.

    Raises:
        BadAddress: The text has an invalid form.
    """
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if is_bracketed:
        host = host[1:-1]
    if (
        not colon
        or not host
        or (":" in host and not is_bracketed)
        or not (port.isascii() and port.isdecimal())
        or not 0 < int(port) < 65_536
        or not _is_name(host)
    ):
        message = f"{text!r} is not HOST:PORT"
        raise BadAddress(message)
    return Address(host, int(port))


def _is_name(host: str) -> bool:
    """Return whether a connection to a host can be attempted."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return "\0" not in host
