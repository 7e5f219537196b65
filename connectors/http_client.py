"""Sends HTTP requests to other programs, with the logins of the user's ``.netrc``.

Logins are not passed in URLs or on command lines, because logs, errors and process
lists would show the logins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from netrc import NetrcParseError
from typing import Any

import httpx

from connectors.sockets.tls import reason_of


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
        httpx.HTTPError: No answer arrived, or the netrc file or the certificate
            authorities cannot be read.
    """
    given = {name: v for name, v in (params or {}).items() if v is not None}
    logins = _logins()
    try:
        return httpx.get(url, params=given or None, timeout=timeout, auth=logins)
    except OSError as error:
        # Each call reads the certificate authorities, even for a URL without TLS.
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
