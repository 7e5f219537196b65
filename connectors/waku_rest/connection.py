"""Settings and HTTP connections for one Waku node."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path

import httpx

from connectors.http_client import BadProxy, told_proxies

_CONNECTIONS = httpx.Limits(
    max_connections=8, max_keepalive_connections=8, keepalive_expiry=2.0
)
"""Limits for the connections to one node. Few connections suffice, because a node
answers in a single thread. The client closes an idle connection before the node closes
it: if the node closed it during a request, a page could be lost."""


ENCODINGS = ("gzip", "deflate")
"""Compressions that a node's answer may have."""


class BadSettings(ValueError):
    """No node can be reached with these settings; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """How to reach the REST API of one node.

    `url` begins with `http` or `https`, and contains no user and no password.
    `timeout_s` limits the time to connect and the time for each part of an answer,
    seconds. The node itself stops a store query after 5 s. `ca_file` is a PEM file of
    trusted certificates; None for httpx's default.

    Raises:
        BadSettings: `url` is invalid, HTTP headers cannot contain `authorization`, the
            certificates in `ca_file` cannot be read, or the environment names a proxy
            that cannot be used.
    """

    url: str
    timeout_s: float = 10.0
    authorization: str = field(default="", repr=False)
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        """Check the settings now; httpx would check them only at the first request."""
        _check_url(self.url)
        if not (self.authorization.isascii() and self.authorization.isprintable()):
            raise BadSettings("the authorization must be one line of printable ASCII")
        open_client(self)


def open_client(settings: NodeSettings) -> httpx.AsyncClient:
    """Create the HTTP client for a node; the caller closes the client.

    The client follows no redirects, because a redirect could send the authorization to
    another server. The client keeps no cookies, because a node could send any number.

    Raises:
        BadSettings: The certificates in `ca_file` can no longer be read, or the
            environment names a proxy that cannot be used.
    """
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": ", ".join(ENCODINGS),
        "User-Agent": "sds-monitor",
    }
    if settings.authorization:
        headers["Authorization"] = settings.authorization
    trust = _trust(settings.ca_file)
    try:
        with told_proxies():
            return httpx.AsyncClient(
                headers=headers,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                timeout=settings.timeout_s,
                limits=_CONNECTIONS,
                verify=trust,
                follow_redirects=False,
            )
    except BadProxy as error:
        raise BadSettings(str(error)) from error


def _check_url(text: str) -> None:
    try:
        url = httpx.URL(text)
        host, port = url.host, url.port
    # The error of a name that is no text in Punycode is a `UnicodeError`.
    except (httpx.InvalidURL, UnicodeError):
        url, host, port = httpx.URL(), "", None
    if url.userinfo:
        message = (
            f"the URL of node {host} must not contain a user and password, "
            "because URLs are logged: give user and password as authorization"
        )
        raise BadSettings(message)
    is_http = url.scheme in ("http", "https") and host
    is_port = port is None or 0 < port < 65_536
    if not is_http or not is_port or url.query or url.fragment:
        message = (
            f"{text!r} is not the URL of a node: use a URL such as "
            "http://127.0.0.1:8645"
        )
        raise BadSettings(message)


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    try:
        if ca_file is None:
            return httpx.create_ssl_context()
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        source = ca_file or "the file that SSL_CERT_FILE names"
        message = f"certificates cannot be read from {source}: {error}"
        raise BadSettings(message) from error
