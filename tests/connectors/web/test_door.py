"""What a request passes before it is answered: Host, login, headers."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import bcrypt
import httpx
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from connectors.web.access import OPEN, Access, WebConfig
from connectors.web.door import (
    MOST_CHECKS,
    MOST_WAITING,
    MOST_WAITING_OF_ADDRESS,
    Door,
    Passwords,
    TooManyLogins,
)
from connectors.web.server import WebServer

USERS = {"alice": bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()}
TOKEN = "an-unguessable-token"  # noqa: S105 - of the tests
CONFIG = WebConfig(
    users=USERS,
    tokens={"prometheus": hashlib.sha256(TOKEN.encode()).hexdigest()},
    open_paths=frozenset({"/taps"}),
    headers={"X-Frame-Options": "deny"},
)
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def ask(
    app: Any,
    path: str,
    access: Access = OPEN,
    headers: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
) -> httpx.Response:
    """Ask an application behind a door; no process, no socket."""

    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(Door(app, access))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1"
        ) as client:
            return await client.get(path, headers=headers, auth=auth)

    return asyncio.run(run())


@pytest.fixture
def guarded() -> Access:
    """Who may read: alice, and whoever has the token."""
    return Access(lambda: CONFIG, ["monitor.example.org"])


@pytest.mark.parametrize(
    "path", ["/", "/metrics", "/api/v1/channels", "/static/style.css", "/nothing"]
)
def test_nothing_is_read_without_a_login(
    stage: Any, guarded: Access, path: str
) -> None:
    """The answer says how to log in, and has the configured headers."""
    answer = ask(stage.app, path, guarded)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith('Basic realm="sds-monitor"')
    assert answer.headers["x-frame-options"] == "deny"
    assert "a login is needed" in answer.text


def test_login_opens_everything(stage: Any, guarded: Access) -> None:
    """By password or by token."""
    for headers, auth in ((BEARER, None), (None, ("alice", "secret"))):
        answer = ask(stage.app, "/metrics", guarded, headers, auth)
        assert answer.status_code == 200
        assert answer.headers["x-frame-options"] == "deny"


@pytest.mark.parametrize(
    "given",
    [
        "Bearer wrong",
        "Bearer",
        "Basic",
        "Basic \u00fc".encode(),
        "Basic YWxpY2U=",
        "Basic " + "!" * 90,
        "Digest a",
    ],
)
def test_malformed_login_is_none(stage: Any, guarded: Access, given: Any) -> None:
    """Whatever it holds."""
    answer = ask(stage.app, "/readyz", guarded, {"Authorization": given})
    assert answer.status_code == 401


def test_wrong_password_and_unknown_user_are_refused_alike(
    stage: Any, guarded: Access
) -> None:
    """Also with a password that bcrypt cannot take."""
    for auth in (("alice", "wrong"), ("bob", "secret"), ("alice", "x" * 100)):
        assert ask(stage.app, "/", guarded, auth=auth).status_code == 401


def test_probes_need_no_login_and_say_no_more_than_a_status(
    stage: Any, guarded: Access, snapshot: Any
) -> None:
    """Supervisors have no login; the reason of an obstacle is for those who have."""
    assert ask(stage.app, "/healthz", guarded).status_code == 200
    assert ask(stage.app, "/taps", guarded).status_code == 200
    stage.snapshot = snapshot({}, error="kafka-1.internal is away", running=False)
    answer = ask(stage.app, "/readyz", guarded)
    assert (answer.status_code, answer.text) == (503, "not ready\n")
    assert "kafka-1.internal" in ask(stage.app, "/readyz", guarded, BEARER).text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:9108", 200),
        ("10.1.2.3:9108", 200),
        ("[2001:db8::1]:9108", 200),
        ("Monitor.example.org.:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("[::1].evil.example", 421),
        ("127.0.0.1/healthz?", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
def test_only_known_names_are_answered(stage: Any, host: str, status: int) -> None:
    """Addresses cannot be rebound; the name of another site is refused in one line."""
    access = Access(hosts=["monitor.example.org"])
    answer = ask(stage.app, "/healthz", access, {"Host": host})
    assert answer.status_code == status
    if status == 421:
        assert answer.text == f"the host name {host} is not allowed by --allowed-host\n"


@pytest.mark.parametrize("host", ["monitor.example.org", "monitor.example.org."])
def test_final_dot_of_an_allowed_name_does_not_matter(stage: Any, host: str) -> None:
    """The root of the domain name system is the same with and without it."""
    access = Access(hosts=["Monitor.example.org."])
    assert ask(stage.app, "/healthz", access, {"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://localhost/healthz", "evil.example", 200),
        ("HTTPS://LOCALHOST:1/healthz", "localhost", 200),
        ("http://localhost/metrics?name[]=x", "localhost", 200),
        ("http://localhost", "localhost", 200),
        ("http://localhost?level=ok", "localhost", 200),
        ("http://localhost/nothing%2F", "localhost", 404),
        ("http://evil.example/healthz", "localhost", 421),
        ("http://user@localhost/healthz", "localhost", 421),
        ("http:///healthz", "localhost", 421),
    ],
)
def test_target_may_be_a_whole_address(
    stage: Any, target: str, host: str, status: int
) -> None:
    """As RFC 9112 requires, its host then counts instead of the header's."""
    with WebServer(stage.app, port=0) as server:
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(
                f"GET {target} HTTP/1.1\r\nHost: {host}\r\n"
                "Connection: close\r\n\r\n".encode()
            )
            answer = b"".join(iter(lambda: connection.recv(10_000), b""))
    assert answer.startswith(f"HTTP/1.1 {status}".encode())


def test_whole_address_opens_nothing_else(stage: Any, guarded: Access) -> None:
    """The path in the address decides which login is needed."""
    with WebServer(stage.app, port=0, access=guarded) as server:
        port = int(server.url.rpartition(":")[2])
        for path, status in (("/healthz", 200), ("/taps", 200), ("/metrics", 401)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            with closing(connection):
                connection.request("GET", f"http://localhost{path}")
                assert connection.getresponse().status == status


def test_request_with_two_lengths_ends_its_connection(stage: Any) -> None:
    """What follows is no request: a proxy may have taken it for a body."""
    with WebServer(stage.app, port=0) as server:
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(
                b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            )
            answer = b"".join(iter(lambda: connection.recv(10_000), b""))
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


class SlowHash:
    """Takes the place of bcrypt's computing, which takes as long as a test likes.

    Attributes:
        count: Passwords that were checked.
        may_end: Lets all end.
    """

    def __init__(self) -> None:
        self.count = 0
        self.may_end = threading.Event()

    def __call__(self, password: bytes, hashed: bytes) -> bool:
        """Check a password."""
        self.count += 1
        assert self.may_end.wait(30)
        return password == b"secret"


@pytest.fixture
def slow_hash(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowHash]:
    """A hash that waits."""
    made = SlowHash()
    monkeypatch.setattr(bcrypt, "checkpw", made)
    yield made
    made.may_end.set()


def test_strangers_cannot_choose_what_passwords_cost(slow_hash: SlowHash) -> None:
    """One address has one at a time, all together a few; the right one is kept."""
    passwords = Passwords(failure_s=0.2)

    def verify(password: str, address: str) -> asyncio.Task[bool]:
        asking = passwords.verify(USERS, "alice", password, address)
        return asyncio.get_running_loop().create_task(asking)

    async def run() -> None:
        first = [verify("wrong", f"10.0.0.{n}") for n in range(MOST_CHECKS)]
        same = verify("wrong", "10.0.0.0")
        await asyncio.sleep(0)
        with pytest.raises(TooManyLogins) as other:
            await verify("secret", "10.0.0.0")
        with pytest.raises(TooManyLogins) as late:
            await verify("secret", "10.0.0.99")
        assert (other.value.status, late.value.status) == (429, 503)
        slow_hash.may_end.set()
        assert not any([*await asyncio.gather(*first), await same])
        assert slow_hash.count == MOST_CHECKS
        with pytest.raises(TooManyLogins):
            await verify("secret", "10.0.0.0")
        async with asyncio.timeout(30):
            while True:
                try:
                    assert await verify("secret", "10.0.0.0")
                    break
                except TooManyLogins:
                    await asyncio.sleep(0.02)
        count = slow_hash.count
        assert all([await verify("secret", f"10.0.1.{n}") for n in range(20)])
        assert slow_hash.count == count

    asyncio.run(run())


def test_removed_user_has_no_login() -> None:
    """Nor has the old name of a renamed user, whose hash stays the same."""
    (hashed,) = USERS.values()

    async def run() -> None:
        passwords = Passwords(failure_s=0.0)
        for users, is_known in ((USERS, True), ({"bob": hashed}, False)):
            answer = await passwords.verify(users, "alice", "secret", "10.0.0.1")
            assert answer is is_known
        assert await passwords.verify(USERS, "alice", "secret", "10.0.0.2")

    asyncio.run(run())


def test_few_requests_wait_for_a_password(slow_hash: SlowHash) -> None:
    """Of an address and of all together, since each keeps its connection."""

    async def run() -> None:
        passwords = Passwords()
        tasks = asyncio.get_running_loop()

        def ask(address: int) -> asyncio.Task[bool]:
            asking = passwords.verify(USERS, "alice", "wrong", f"10.0.0.{address}")
            return tasks.create_task(asking)

        each = MOST_WAITING_OF_ADDRESS
        waiting = [ask(n // each) for n in range(MOST_WAITING)]
        await asyncio.sleep(0)
        for address, status in ((0, 429), (99, 503)):
            with pytest.raises(TooManyLogins) as caught:
                await ask(address)
            assert caught.value.status == status
        # Who has left waits no more.
        waiting.pop().cancel()
        await asyncio.sleep(0)
        waiting.append(ask(99))
        slow_hash.may_end.set()
        assert not any(await asyncio.gather(*waiting))

    asyncio.run(run())


def test_addresses_in_their_pause_keep_no_other_out() -> None:
    """Only passwords that are being verified count."""

    async def run() -> None:
        passwords = Passwords(failure_s=60.0)
        for n in range(MOST_CHECKS):
            assert not await passwords.verify(USERS, "alice", "wrong", f"10.0.0.{n}")
        assert await passwords.verify(USERS, "alice", "secret", "10.0.0.99")

    asyncio.run(run())


def test_address_of_a_client_is_that_of_its_connection() -> None:
    """Any program of this machine could write `X-Forwarded-For`."""

    async def client(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(scope["client"][0])(scope, receive, send)

    with WebServer(client, port=0) as server:
        headers = {"X-Forwarded-For": "10.0.0.1"}
        assert httpx.get(server.url, headers=headers).text == "127.0.0.1"


def test_event_loop_answers_while_a_password_is_checked(slow_hash: SlowHash) -> None:
    """A probe does not wait for bcrypt."""

    async def run() -> None:
        passwords = Passwords()
        asking = passwords.verify(USERS, "alice", "secret", "10.0.0.1")
        checking = asyncio.get_running_loop().create_task(asking)
        while not slow_hash.count:
            await asyncio.sleep(0.001)
        assert not checking.done()
        slow_hash.may_end.set()
        assert await checking

    asyncio.run(run())
