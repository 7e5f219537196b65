"""What every request passes first: Host, login, and headers of the configuration.

A page of another site cannot read the monitor through the browser of somebody who may:
its name in the header Host is refused (DNS rebinding).
"""

from __future__ import annotations

import base64
import ipaddress
import re
from binascii import Error as NotBase64

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connectors.web.access import Access, WebConfig, is_token
from connectors.web.answers import plain_refusal
from connectors.web.crowding import PROBE
from connectors.web.passwords import Passwords, TooManyLogins
from sds_core.text import printable, shorten

ANONYMOUS = "sds-monitor.anonymous"
"""Key of a scope whose request has no login, and is answered with a status alone."""

_READINESS = "/readyz"
"""Without a login, it does not say what the obstacle is."""

_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^:]*))(?::\d*)?")
_LONGEST_HOST = 80


class Door:
    """Middleware that refuses requests without a known Host or without a login."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._hosts = {"localhost", *(host.lower() for host in access.hosts)}
        self._passwords = Passwords()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        config = self._access.config()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(config.headers)
            await send(message)

        refused = await self._refusal(Request(scope), config)
        await (refused or self._app)(scope, receive, send_with_headers)

    async def _refusal(self, request: Request, config: WebConfig) -> Response | None:
        headers = request.headers
        if "content-length" in headers and "transfer-encoding" in headers:
            # RFC 9112, section 6.3: a proxy may have read another request (smuggling).
            why = "a request must not have both Content-Length and Transfer-Encoding"
            return plain_refusal(request, 400, why, {"Connection": "close"})
        host = headers.get("host", "localhost")
        if not self._is_known(host):
            name = printable(shorten(host, _LONGEST_HOST))
            why = f"the host {name} is not one of --allowed-host"
            return plain_refusal(request, 421, why)
        if not config.needs_login:
            return None
        # Not that of `request.url`, which the header Host is a part of.
        path = request.scope["path"]
        # Supervisors have no login, and it says nothing but "ok".
        if path == PROBE or path in config.open_paths:
            return None
        try:
            if await self._has_login(request, config):
                return None
        except TooManyLogins as error:
            return plain_refusal(
                request, error.status, str(error), {"Retry-After": "2"}
            )
        if path == _READINESS and "authorization" not in headers:
            request.scope[ANONYMOUS] = True
            return None
        scheme = 'Basic realm="sds-monitor", charset="UTF-8"'
        asked = scheme if config.users else "Bearer"
        return plain_refusal(
            request, 401, "a login is needed", {"WWW-Authenticate": asked}
        )

    def _is_known(self, host: str) -> bool:
        """Whether a Host is an address, which nobody can rebind, or a known name."""
        if (match := _HOST.fullmatch(host)) is None:
            return False
        name = (match[1] or match[2]).removesuffix(".").lower()
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._hosts
        return True

    async def _has_login(self, request: Request, config: WebConfig) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        match scheme.lower():
            case "bearer":
                return is_token(given.strip(), config.tokens)
            case "basic" if config.users:
                try:
                    pair = base64.b64decode(given, validate=True).decode()
                except (NotBase64, ValueError):
                    return False
                user, colon, password = pair.partition(":")
                address = request.client.host if request.client else ""
                return bool(colon) and await self._passwords.verify(
                    config.users, user, password, address
                )
        return False
