"""TLS contexts whose certificates can change, or that accept only allowed clients."""

from __future__ import annotations

import ipaddress
import logging
import ssl
from collections.abc import Callable, Collection, Iterator
from typing import Any, Self

from sds_core.text import printable, shorten

_log = logging.getLogger("sds-monitor")

_LONGEST_NAMES = 200
"""Maximum length of the list of a certificate's names in the log, characters."""


class NewestContext(ssl.SSLContext):
    """A server's context that uses the newest TLS settings for each connection.

    A certificate can thus be replaced while the server runs. Only `wrap_bio` is
    overridden, because `asyncio` calls no other method of a context.
    """

    def __new__(cls, newest: Callable[[], ssl.SSLContext]) -> Self:
        """Make a context without certificates."""
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, newest: Callable[[], ssl.SSLContext]) -> None:
        self._newest = newest

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        """Begin a connection with the newest context."""
        return self._newest().wrap_bio(*arguments, **named)


class ChosenClientsContext(ssl.SSLContext):
    """A server's context that accepts only clients with an allowed name.

    A name is a subject alternative name of the client's certificate: DNS name, IP
    address, e-mail address or URI. Names are compared exactly, as in Prometheus'
    exporter toolkit (prometheus/exporter-toolkit:web/tls_config.go,
    VerifyPeerCertificate).
    """

    def __new__(cls, allowed: Collection[str]) -> Self:
        """Make a context without certificates."""
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, allowed: Collection[str]) -> None:
        self.allowed = frozenset(allowed)
        # `_ChosenClient` verifies the names after the handshake, because Python has no
        # callback to verify a client's certificate.
        self.sslobject_class = _ChosenClient


class _ChosenClient(ssl.SSLObject):
    def do_handshake(self) -> None:
        super().do_handshake()
        names = set(_names_in(self.getpeercert() or {}))
        context = self.context
        assert isinstance(context, ChosenClientsContext)  # noqa: S101 - it made this
        if names.isdisjoint(context.allowed):
            shown = printable(shorten(", ".join(sorted(names)), _LONGEST_NAMES))
            _log.warning(
                "a client's certificate is refused: client_allowed_sans contains "
                "none of the names in the certificate (%s)",
                shown or "the certificate has no names",
            )
            raise ssl.SSLCertVerificationError(
                "client_allowed_sans contains none of the names in the certificate"
            )


def _names_in(certificate: dict[str, Any]) -> Iterator[str]:
    """Yield the names in a certificate. IP addresses have the form that Go writes."""
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in {"DNS", "email", "URI"}:
            yield value
        elif kind == "IP Address":
            # OpenSSL writes all eight groups of an IPv6 address, and may append a line
            # feed.
            yield str(ipaddress.ip_address(value.strip()))


def reason_of(error: OSError) -> str:
    """Return why a file of certificates or keys cannot be used, given its error."""
    if isinstance(error, ssl.SSLError):
        # An error without a reason means invalid PEM or a wrong password.
        return error.reason or "not to be read as PEM"
    return error.strerror or str(error)
