"""Checks each request's Host and login, and adds configured headers to responses.

Requests with an unknown name in the header Host are refused. A page of another site
thus cannot read the monitor through a user's browser (DNS rebinding).

Login attempts of untrusted clients may use only limited CPU time, because a bcrypt hash
takes a large part of a second of CPU time. A single thread computes all hashes. A
correct pair of user and password is hashed only once. For each client address, at most
one wrong pair is hashed per second. Only few requests may wait for a hash, because each
waiting request occupies a connection.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import ipaddress
import re
import secrets
from binascii import Error as NotBase64
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import bcrypt
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connectors.web.absolute_form import in_origin_form
from connectors.web.access import Access, WebConfig, is_token
from connectors.web.answers import plain_refusal
from connectors.web.crowding import PROBE
from sds_core.text import printable, shorten

MOST_CHECKS = 8
"""Maximum number of passwords that are being verified or wait for verification."""

MOST_WAITING = 20
"""Maximum number of requests that wait for the check of a password. The sum of this
limit and the limits in `connectors.web.crowding` is below the maximum number of a
server's connections."""

MOST_WAITING_OF_ADDRESS = 8
"""Maximum number of requests from one address that wait for the check of a password. A
browser sends up to six requests at once."""

_FAILURE_S = 1.0
"""How long the clients of an address must wait after a wrong password, seconds."""

ANONYMOUS = "sds-monitor.anonymous"
"""Key in the ASGI scope that marks a readiness request without the required login. The
answer to this request gives the status, but no reason."""

_READINESS = "/readyz"
"""Path of the readiness probe. Clients without a login do not learn why the process is
not ready."""

_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^:]*))(?::\d*)?")

_LONGEST_HOST = 80


class TooManyLogins(Exception):
    """A password is not verified now; the message gives the reason.

    Attributes:
        status: HTTP status: 429 if the client's address tries too often; 503 if too
            many addresses try.
    """

    def __init__(self, status: int) -> None:
        who = "this address" if status == 429 else "too many addresses"
        super().__init__(f"too many logins from {who}: try again in a few seconds")
        self.status = status


class Passwords:
    """Verifies passwords. All calls must be in the same event loop."""

    def __init__(self, failure_s: float = _FAILURE_S) -> None:
        self._failure_s = failure_s
        self._thread = ThreadPoolExecutor(1, "passwords")
        self._secret = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        self._waiting: Counter[str] = Counter()
        self._checks: dict[str, tuple[bytes, asyncio.Future[bool]]] = {}

    async def verify(
        self, users: Mapping[str, str], user: str, password: str, address: str
    ) -> bool:
        """Return whether a password belongs to a user.

        `users` maps each user to the bcrypt hash of a password, and is not empty.

        Raises:
            TooManyLogins: A limit on CPU time or on waiting requests is reached, so the
                password is not verified.
        """
        # For an unknown user, use another user's hash. The check then takes as long as
        # for a known user, so its duration does not reveal which users exist.
        hashed = users.get(user) or next(iter(users.values()))
        pair = "\0".join((user, hashed, password)).encode()
        digest = hmac.digest(self._secret, pair, "sha256")
        # A kept pair may be of a user that has been removed, because an unknown user is
        # checked with the hash of another.
        if user in users and hmac.compare_digest(self._right.get(user, b""), digest):
            return True
        known, check = self._checks.get(address, (digest, None))
        if known != digest or self._waiting[address] >= MOST_WAITING_OF_ADDRESS:
            raise TooManyLogins(429)
        if self._waiting.total() >= MOST_WAITING:
            raise TooManyLogins(503)
        if check is None:
            running = [c for _, c in self._checks.values() if not c.done()]
            if len(running) >= MOST_CHECKS:
                raise TooManyLogins(503)
            check = asyncio.get_running_loop().run_in_executor(
                self._thread, _is_password, password, hashed
            )
            self._checks[address] = digest, check
            check.add_done_callback(lambda done: self._ended(address, done))
        self._waiting[address] += 1
        try:
            # Shield the check: if a client disconnects, other requests may still wait
            # for the same check.
            is_right = await asyncio.shield(check) and user in users
        finally:
            # Unlike `-= 1`, this also removes the address if its count becomes 0.
            self._waiting -= Counter((address,))
        if is_right:
            self._right[user] = digest
        return is_right

    def _ended(self, address: str, check: asyncio.Future[bool]) -> None:
        pause_s = 0.0 if not check.cancelled() and check.result() else self._failure_s
        check.get_loop().call_later(pause_s, self._checks.pop, address)


def _is_password(password: str, hashed: str) -> bool:
    try:
        return bcrypt.checkpw(password.encode(), hashed.encode())
    except ValueError:
        # bcrypt cannot hash more than 72 bytes.
        return False


class Door:
    """Middleware that refuses requests without a known Host or a required login."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._hosts = {"localhost", *map(_normal, access.hosts)}
        self._passwords = Passwords()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        in_origin_form(scope)
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
            # If a request has both headers, a proxy and this server may disagree about
            # the byte at which the request ends (request smuggling; RFC 9112, 6.3).
            why = "a request must not have both Content-Length and Transfer-Encoding"
            return plain_refusal(request, 400, why, {"Connection": "close"})
        host = headers.get("host", "localhost")
        if not self._is_known(host):
            name = printable(shorten(host, _LONGEST_HOST))
            why = f"the host name {name} is not allowed by --allowed-host"
            return plain_refusal(request, 421, why)
        if not config.needs_login:
            return None
        # Do not use the path in `request.url`: this URL contains the untrusted header
        # Host.
        path = request.scope["path"]
        # Supervisors request the probe without a login.
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
        """Whether a Host is a known name or an IP address.

        An IP address is safe from DNS rebinding, because it needs no DNS.
        """
        if (match := _HOST.fullmatch(host)) is None:
            return False
        name = _normal(match[1] or match[2])
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


def _normal(name: str) -> str:
    return name.removesuffix(".").lower()
