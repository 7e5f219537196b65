"""Sends HTTP requests to other programs, with the logins of the user's ``.netrc``.

Logins are not passed in URLs or on command lines, because logs, errors and process
lists would show the logins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from netrc import NetrcParseError
from typing import Any

import httpx

from connectors.sockets.tls import reason_of
from sds_core.text import one_line


class BadProxy(httpx.RequestError):
    """The environment names a proxy that cannot be used."""


@contextmanager
def told_proxies() -> Iterator[None]:
    """Raise `BadProxy` if the block cannot create a client of httpx.

    A client reads the proxies from the environment, even if it will use none.
    """
    try:
        yield
    # httpx raises an `ImportError` if the package for SOCKS is not installed.
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        message = (
            f"the environment names a proxy that cannot be used "
            f"({one_line(str(error))}): correct or unset HTTP_PROXY, HTTPS_PROXY and "
            "ALL_PROXY"
        )
        raise BadProxy(message) from error


def get(
    url: str, *, params: Mapping[str, Any] | None = None, timeout: float
) -> httpx.Response:
    """Send a GET request and return the answer.

    Items of `params` whose value is None are not sent. The login comes from the file
    that the environment variable ``NETRC`` names or, if it is not set, from
    ``~/.netrc``. Certificates are verified; if ``SSL_CERT_FILE`` is set, the
    certificate authorities in that file are used. `timeout`, in seconds, limits the
    time to connect, and the time to wait for each part of the answer.

    Raises:
        httpx.InvalidURL: The URL is invalid.
        httpx.HTTPError: No answer arrived, the netrc file or the certificate
            authorities cannot be read, or a proxy cannot be used.
    """
    given = {name: v for name, v in (params or {}).items() if v is not None}
    with _client(timeout) as client:
        return client.get(url, params=given or None)


def _client(timeout: float) -> httpx.Client:
    logins = _logins()
    try:
        with told_proxies():
            return httpx.Client(auth=logins, timeout=timeout)
    except OSError as error:
        # Each client reads the certificate authorities, even for a URL without TLS.
        message = (
            f"the certificate authorities cannot be read ({reason_of(error)}): check "
            "SSL_CERT_FILE"
        )
        raise httpx.RequestError(message) from error


def _logins() -> httpx.Auth | None:
    try:
        return httpx.NetRCAuth(os.environ.get("NETRC"))
    except FileNotFoundError:
        return None
    except (NetrcParseError, OSError, UnicodeDecodeError) as error:
        message = (
            "the logins in ~/.netrc, or in the file that NETRC names, cannot be read: "
            f"{error}"
        )
        raise httpx.RequestError(message) from error
