"""Sends HTTP requests to other programs, with the logins of the user's ``.netrc``.

URLs and command lines contain no logins, because logs, errors and process lists show
URLs and command lines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from netrc import NetrcParseError
from typing import Any

import httpx


def get(
    url: str, *, params: Mapping[str, Any] | None = None, timeout: float
) -> httpx.Response:
    """Return the answer to a GET request; parameters that are None are not sent.

    The login is from ``~/.netrc``, or from the file that ``NETRC`` names. Certificates
    are verified, with the authorities in ``SSL_CERT_FILE`` if it is set. `timeout`
    limits the time to connect, and the time for each part of the answer, seconds.

    Raises:
        httpx.InvalidURL: The URL is invalid.
        httpx.HTTPError: No answer arrived, or the file of logins cannot be read.
    """
    given = {name: v for name, v in (params or {}).items() if v is not None}
    return httpx.get(url, params=given or None, timeout=timeout, auth=_logins())


def _logins() -> httpx.Auth | None:
    try:
        return httpx.NetRCAuth(os.environ.get("NETRC"))
    except FileNotFoundError:
        return None
    except (NetrcParseError, OSError, UnicodeDecodeError) as error:
        message = f"the logins in NETRC or ~/.netrc cannot be read: {error}"
        raise httpx.RequestError(message) from error
