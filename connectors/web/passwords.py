"""Verifies passwords, at a cost that strangers cannot choose.

A bcrypt hash takes a good part of a second of one processor. So it is computed outside
the event loop, once for a pair of user and password that is right, one at a time, and
of each address at most once a second. Few requests wait for it, since each of them
keeps its connection.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import bcrypt

MOST_CHECKS = 8
"""Passwords that are verified, or wait for it, at once."""

MOST_WAITING = 20
"""Requests that wait for a password at once. With those under way
(`connectors.web.crowding`), they are fewer than the connections that a server keeps."""

MOST_WAITING_OF_ADDRESS = 8
"""Those of one address: a browser sends six."""

_FAILURE_S = 1.0
"""Time after a wrong password in which its address can try no other, in seconds."""


class TooManyLogins(Exception):
    """A password is not verified now; the message says why.

    Attributes:
        status: HTTP status: 429 if this address tries too often, else 503.
    """

    def __init__(self, status: int) -> None:
        who = "this address" if status == 429 else "too many addresses"
        super().__init__(f"too many logins of {who}: ask again in a few seconds")
        self.status = status


class Passwords:
    """Verifies passwords; called in one event loop.

    Args:
        failure_s: Time after a wrong password in which its address can try no other,
            in seconds.
    """

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
        """Return whether a user has a password.

        Args:
            users: bcrypt hash by user, at least one.
            user: Who asks.
            password: As it was sent.
            address: From where.

        Raises:
            TooManyLogins: It would cost too much now.
        """
        # An unknown user takes as long as a known one.
        hashed = users.get(user) or next(iter(users.values()))
        pair = "\0".join((user, hashed, password)).encode()
        digest = hmac.digest(self._secret, pair, "sha256")
        if hmac.compare_digest(self._right.get(user, b""), digest):
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
            # A client that leaves ends nothing that others wait for.
            is_right = await asyncio.shield(check) and user in users
        finally:
            # Unlike `-= 1`, this removes an address of which no request waits.
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
        # More than 72 bytes, of which bcrypt can make no hash.
        return False
