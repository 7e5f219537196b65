"""What clients may take from the server: time, connections, descriptors, processor."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import pytest
import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from connectors.web.connection import DEFAULT_LIMITS, LimitedConnection
from connectors.web.crowding import MOST_REQUESTS, LimitedRequests
from connectors.web.metrics import Metrics
from sds_core.observer.snapshot import Snapshot
from tests.support.waiting import wait_for
from tests.support.web.connections import Connect, is_closed, served

SHORT = replace(DEFAULT_LIMITS, request_s=0.2, unread_s=0.2)
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LARGE = b"x" * 50_000_000
"""More than the buffers of both ends hold."""


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    """An application with a large answer."""
    await Response(LARGE)(scope, receive, send)


async def small(scope: Scope, receive: Receive, send: Send) -> None:
    """An application with a small answer."""
    await Response(b"ok\n")(scope, receive, send)


def answer_of(connection: socket.socket) -> bytes:
    """The answer to a small request."""
    connection.sendall(REQUEST)
    return whole(connection)


def whole(connection: socket.socket) -> bytes:
    """The rest of a small answer."""
    answer = b""
    while not answer.endswith(b"ok\n"):
        part = connection.recv(1_000)
        assert part, answer
        answer += part
    return answer


def test_connection_without_a_request_is_closed() -> None:
    """A client that is gone, or does nothing, keeps no descriptor."""
    with served(small, SHORT) as connect:
        silent = connect()
        wait_for(lambda: is_closed(silent))


CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_body_of_a_request_is_wrong_before_its_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The answer is the refusal alone."""
    with served(small, DEFAULT_LIMITS) as connect:
        for _ in range(20):
            client = connect()
            client.sendall(CHUNKED + b"no chunk\r\n")
            wait_for(lambda client=client: is_closed(client))
            answer = client.recv(1_000)
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert answer.count(b"HTTP/1.1") == 1
    assert not caplog.records


@pytest.mark.parametrize("rest", [b"no chunk\r\n", b"1;" + b"a" * 100_000])
def test_rest_of_a_request_is_wrong_after_its_answer(
    rest: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection is closed, and the log has no traceback that anyone can cause."""
    with served(small, DEFAULT_LIMITS) as connect:
        client = connect()
        client.sendall(CHUNKED)
        assert whole(client).startswith(b"HTTP/1.1 200 ")
        client.sendall(rest)
        wait_for(lambda: is_closed(client))
    assert not caplog.records


@pytest.mark.parametrize(
    "begin",
    [
        b"GET / HTTP/1.1\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
    ],
    ids=["head", "body"],
)
def test_request_that_comes_byte_by_byte_is_cut_off(begin: bytes) -> None:
    """Bytes that come do not prolong its time."""
    # A busy machine sends nothing for a moment, which would be another reason.
    with served(small, replace(SHORT, request_s=2.0)) as connect:
        slow = connect()
        slow.sendall(begin)
        deadline = time.monotonic() + 60
        while not is_closed(slow):
            assert time.monotonic() < deadline
            slow.send(b"x")
            time.sleep(0.01)


def test_idle_connection_outlives_the_time_of_a_request() -> None:
    """Between two requests a client may wait longer than within one."""
    with served(small, SHORT) as connect:
        patient = connect()
        for _ in range(3):
            assert answer_of(patient).startswith(b"HTTP/1.1 200")
            time.sleep(3 * SHORT.request_s)


def test_client_that_does_not_read_is_cut_off() -> None:
    """Its answer does not stay in memory."""
    with served(large, SHORT) as connect:
        deaf = connect()
        deaf.sendall(REQUEST)
        wait_for(lambda: is_closed(deaf))


def test_client_that_reads_slowly_gets_the_whole_answer() -> None:
    """As long as it is faster than the least rate, however long that takes."""
    limits = replace(DEFAULT_LIMITS, request_s=0.2, unread_s=0.2, read_bytes_s=1e6)
    with served(large, limits) as connect:
        slow = connect()
        slow.sendall(REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        begun, received = time.monotonic(), 0
        while data := slow.recv(1_000_000):
            received += len(data)
            time.sleep(1.5 * len(data) / len(LARGE))
        assert received > len(LARGE)
        assert time.monotonic() - begun > 1.0


def test_client_that_reads_too_slowly_is_cut_off() -> None:
    """Bytes now and then do not keep an answer in memory."""
    with served(large, replace(SHORT, unread_s=1.0, read_bytes_s=1e9)) as connect:
        slow = connect()
        slow.sendall(REQUEST)
        deadline = time.monotonic() + 60
        while not is_closed(slow):
            assert time.monotonic() < deadline
            # So much that the server can send more: it does read.
            slow.recv(200_000)
            time.sleep(0.01)


def test_answers_that_nobody_reads_take_no_share_of_the_requests() -> None:
    """What is made and waits for its client refuses nobody else."""
    # More than the system buffers; the transport copies what it cannot send.
    body = 10_000_000 * b"x"

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(body)(scope, receive, send)

    with served(LimitedRequests(page), DEFAULT_LIMITS) as connect:
        for _ in range(MOST_REQUESTS + 10):
            deaf = connect()
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            # The second answer waits until the first one is read.
            deaf.sendall(2 * REQUEST.replace(b"/healthz", b"/"))
        # All before have been begun once this is answered.
        assert connect_and_ask(connect, b"/healthz").startswith(b"HTTP/1.1 200")
        assert connect_and_ask(connect, b"/").startswith(b"HTTP/1.1 200")
        assert connect_and_ask(connect, b"/metrics").startswith(b"HTTP/1.1 200")


def test_pages_that_nobody_reads_end_no_scrape() -> None:
    """Connections for `/metrics` are not ended for those for pages, however many."""
    limits = replace(DEFAULT_LIMITS, connections=4, watching=1)
    with served(large, limits) as connect:
        scraping = connect()
        scraping.sendall(REQUEST.replace(b"/healthz", b"/metrics"))
        assert scraping.recv(1_000)
        for _ in range(10):
            connect().sendall(REQUEST.replace(b"/healthz", b"/"))
        assert connect_and_ask(connect, b"/metrics").startswith(b"HTTP/1.1 200")
        assert not is_closed(scraping)


def connect_and_ask(connect: Connect, path: bytes) -> bytes:
    """The begin of the answer to a new client."""
    fresh = connect()
    fresh.sendall(REQUEST.replace(b"/healthz", path))
    return fresh.recv(1_000)


def test_connection_that_its_client_has_just_ended_makes_room() -> None:
    """With TLS, it has no socket from then until it is lost."""

    class Ended(asyncio.Transport):
        is_aborted = False

        def abort(self) -> None:
            self.is_aborted = True

    async def run() -> None:
        connection = LimitedConnection(
            config=uvicorn.Config(small, ws="none", lifespan="off", log_config=None),
            server_state=ServerState(),
            app_state={},
            limits=SHORT,
            made=lambda _: None,
        )
        connection.transport = ended = Ended()
        connection.abort()
        assert ended.is_aborted

    asyncio.run(run())


def test_clients_that_wait_keep_nobody_out() -> None:
    """The connection that has waited longest makes room for a new one."""
    limits = replace(DEFAULT_LIMITS, connections=5, request_s=600.0)
    with served(small, limits) as connect:
        silent = [connect() for _ in range(50)]
        idle = connect()
        assert answer_of(idle).startswith(b"HTTP/1.1 200")
        assert answer_of(connect()).startswith(b"HTTP/1.1 200")
        wait_for(lambda: sum(not is_closed(one) for one in silent) <= 3)
        assert answer_of(idle).startswith(b"HTTP/1.1 200")


def test_connections_are_refused_while_all_are_answered() -> None:
    """A request under way is not given up for a new connection."""
    begun = threading.Semaphore(0)
    end = threading.Event()

    async def busy(scope: Scope, receive: Receive, send: Send) -> None:
        begun.release()
        await asyncio.to_thread(end.wait, 60)
        await small(scope, receive, send)

    with served(busy, replace(DEFAULT_LIMITS, connections=3)) as connect:
        asking = [connect() for _ in range(3)]
        for one in asking:
            one.sendall(REQUEST)
            assert begun.acquire(timeout=60)
        # The refusal may come before `connect` returns.
        with suppress(ConnectionResetError):
            late = connect()
            wait_for(lambda: is_closed(late))
        end.set()
        for one in asking:
            assert whole(one).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/taps",
        "/monitor",
        "/channel?id=a",
        "/metrics",
        "/readyz",
        "/api/v1/channels",
        "/api/v1/channels/a",
        "/api/v1/taps",
        "/api/v1/incidents",
        "/nothing",
    ],
)
def test_health_is_answered_while_a_page_is_made(
    served: str, stage: Any, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Nothing that reads all channels runs in the event loop."""
    begun, end = threading.Event(), threading.Event()
    snapshot: Snapshot = stage.snapshot

    def read(_: object) -> Snapshot:
        begun.set()
        assert end.wait(60)
        return snapshot

    monkeypatch.setattr(type(stage), "snapshot", property(read), raising=False)
    asking = threading.Thread(target=httpx.get, args=[served + path])
    asking.start()
    try:
        assert begun.wait(60)
        assert httpx.get(f"{served}/healthz", timeout=60).status_code == 200
        assert asking.is_alive()
    finally:
        end.set()
        asking.join()


class CountingCollector(Collector):
    """Counts how often it is collected; waits each time until it may.

    Attributes:
        count: Times that it was collected.
        may_end: Lets all end.
    """

    def __init__(self) -> None:
        self.count = 0
        self.may_end = threading.Event()

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: otherwise it would be collected for this."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One sample: the number of the collection."""
        self.count += 1
        count = self.count
        assert self.may_end.wait(60)
        yield GaugeMetricFamily("collections", "Collections.", count)


def test_scrapes_that_wait_share_an_answer() -> None:
    """It was begun after each of them came, so none gets an old one."""
    collector = CountingCollector()
    registry = CollectorRegistry()
    registry.register(collector)
    metrics = Metrics(registry)
    request = Request(
        {"type": "http", "method": "GET", "headers": [], "query_string": b""}
    )

    async def scrape() -> list[bytes]:
        first = asyncio.create_task(metrics.answer(request))
        while not collector.count:
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(metrics.answer(request)) for _ in range(20)]
        await asyncio.sleep(0)
        collector.may_end.set()
        return [bytes((await one).body) for one in (first, *others)]

    first, *others = asyncio.run(scrape())
    assert b"collections 1.0" in first
    assert all(b"collections 2.0" in one for one in others)
    assert collector.count == 2
