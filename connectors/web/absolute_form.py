"""Accepts requests whose target is a whole URL, as clients of a proxy send them.

A server must accept this form, and must ignore the header Host of such a request
(RFC 9112, 3.2.2). Uvicorn takes the URL for a path.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from starlette.types import Scope

_ABSOLUTE = re.compile(rb"https?://([^/]*)(.*)", re.IGNORECASE)


def in_origin_form(scope: Scope) -> None:
    """If a request's target is a URL, move the URL's host to the header Host.

    Only the URL's path stays in the ASGI scope. The scope is changed in place, because
    the connection of the request uses it too.
    """
    match = _ABSOLUTE.fullmatch(scope.get("raw_path", b""))
    if match is None:
        return
    host, path = match.groups()
    scope["raw_path"] = path or b"/"
    scope["path"] = unquote(scope["raw_path"].decode("ascii"))
    others = [header for header in scope["headers"] if header[0] != b"host"]
    scope["headers"] = [(b"host", host), *others]
