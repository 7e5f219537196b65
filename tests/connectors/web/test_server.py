"""An application served from a thread."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from connectors.sockets.listener import PortInUse
from connectors.web.server import WebServer


def test_server_answers_as_soon_as_it_has_started(stage: Any) -> None:
    """The first request succeeds."""
    server = WebServer(stage.app, port=0)
    server.start()
    try:
        assert server.url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{server.url}/healthz").text == "ok\n"
    finally:
        server.stop()


def test_stopped_server_leaves_nothing_behind(stage: Any) -> None:
    """Thread and port are free, and a second stop does nothing."""
    before = set(threading.enumerate())
    server = WebServer(stage.app, port=0)
    server.start()
    port = int(server.url.rpartition(":")[2])
    server.stop()
    server.stop()
    left = set(threading.enumerate()) - before
    assert "web-server" not in {thread.name for thread in left}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_stopped_server_can_start_again(stage: Any) -> None:
    """A second run is as good as the first."""
    server = WebServer(stage.app, port=0)
    for _ in range(2):
        with server:
            assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_port_in_use_is_named(stage: Any) -> None:
    """The error has the port and says what to do."""
    with WebServer(stage.app, port=0) as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(PortInUse) as caught:
            WebServer(stage.app, port=port).start()
    assert caught.value.port == port
    assert str(caught.value) == f"port {port} is in use: choose another"


def test_running_server_is_not_started_twice(stage: Any) -> None:
    """A second start would leave the first server without an owner."""
    with (
        WebServer(stage.app, port=0) as server,
        pytest.raises(RuntimeError, match="running already"),
    ):
        server.start()


def test_stopped_server_has_no_address(stage: Any) -> None:
    """A free port is known only once the server listens."""
    with pytest.raises(RuntimeError, match="not running"):
        _ = WebServer(stage.app, port=0).url


@pytest.mark.parametrize(
    ("host", "start"),
    [
        ("0.0.0.0", "http://127.0.0.1:"),  # noqa: S104 - that is what is tested
        ("::1", "http://[::1]:"),
    ],
)
def test_address_can_be_reached_from_this_machine(
    stage: Any, host: str, start: str
) -> None:
    """Even if the server listens on all addresses."""
    try:
        with WebServer(stage.app, host=host, port=0) as server:
            assert server.url.startswith(start)
            assert httpx.get(f"{server.url}/healthz").status_code == 200
    except OSError:
        if ":" not in host:
            raise
        pytest.skip("no IPv6 here")


def test_stop_aborts_a_request_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """This is expected and no error of the application."""
    begun = threading.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    with WebServer(endless, port=0) as server:
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert begun.wait(5)
            with caplog.at_level(logging.ERROR):
                server.stop()
    assert [record for record in caplog.records if record.exc_info] == []
