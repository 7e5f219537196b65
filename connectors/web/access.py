"""Access rules and encryption of the servers."""

from __future__ import annotations

import hashlib
import hmac
import ssl
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from connectors.sockets.tls import ChosenClientsContext


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Settings in a web configuration file.

    Attributes:
        tls: TLS settings; None for no TLS.
        users: Name of each user -> bcrypt hash of the user's password.
        tokens: Name of each bearer token -> SHA-256 of the token in hexadecimal digits.
        peer_tokens: Name of each token that the port of `audit serve` accepts ->
            SHA-256 of the token in hexadecimal digits.
        open_paths: Paths that need no login.
        headers: Name of each header that is added to every response -> its value.
        certificates: Option in the configuration file -> the option's certificate file.
    """

    tls: ssl.SSLContext | None = None
    users: Mapping[str, str] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    peer_tokens: Mapping[str, str] = field(default_factory=dict)
    open_paths: frozenset[str] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict)
    certificates: Mapping[str, Path] = field(default_factory=dict)

    @property
    def needs_login(self) -> bool:
        """Whether a request needs a password or a token."""
        return bool(self.users or self.tokens)

    @property
    def needs_certificate(self) -> bool:
        """Whether a connection needs a client certificate."""
        return self.tls is not None and self.tls.verify_mode is ssl.CERT_REQUIRED

    @property
    def chooses_clients(self) -> bool:
        """Whether a client certificate must have an allowed name."""
        return isinstance(self.tls, ChosenClientsContext)

    @property
    def keeps_out_peers(self) -> bool:
        """Whether `audit serve` admits only known peers.

        A peer is known by its client certificate, or by a token on a TLS connection.
        """
        has_secret_token = self.tls is not None and bool(self.peer_tokens)
        return self.needs_certificate or has_secret_token

    def admits_peer(self, token: str) -> bool:
        """Whether a peer with this token may send requests; the token may be empty."""
        return not self.peer_tokens or is_token(token, self.peer_tokens)


def is_token(token: str, hashes: Mapping[str, str]) -> bool:
    """Whether the values of `hashes` contain the SHA-256 of `token` in hexadecimal."""
    digest = hashlib.sha256(token.encode()).hexdigest()
    # Every hash is compared to its end. If a comparison stopped at the first
    # difference, its duration would reveal how many digits are right.
    same = [hmac.compare_digest(digest, known) for known in hashes.values()]
    return any(same)


UNPROTECTED = WebConfig()


@dataclass(frozen=True, slots=True)
class Access:
    """Access rules of a server.

    Attributes:
        config: Function that returns the current configuration.
        hosts: Host names by which clients may call the server, in addition to IP
            addresses and "localhost".
    """

    config: Callable[[], WebConfig] = lambda: UNPROTECTED
    hosts: Collection[str] = ()

    @property
    def tls(self) -> Callable[[], ssl.SSLContext] | None:
        """The function that returns the newest TLS context; None without TLS."""
        return None if self.config().tls is None else self._newest

    def _newest(self) -> ssl.SSLContext:
        context = self.config().tls
        assert context is not None  # noqa: S101 - no change of a file removes it
        return context


OPEN = Access()
