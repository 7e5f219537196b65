"""Requests that are refused or fail, and slow ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.side_apps import create_audit_app
from connectors.web.sources import Sources
from sds_core.audit.figures import AuditFigures
from sds_core.observer.snapshot import Snapshot
from tests.support.snapshots import snapshot_of
from tests.support.web.reading import Tags
from tests.support.web.stored import stored


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/api/v1/nothing", 404), ("POST", "/api/v1/channels", 405)],
)
def test_unknown_path_of_the_api_is_an_error_in_json(
    client: httpx.Client, method: str, path: str, status: int
) -> None:
    """A program does not read pages."""
    answer = client.request(method, path)
    assert answer.status_code == status
    assert "address" in answer.json()["error"]


def test_wrong_method_is_an_error_page(client: httpx.Client) -> None:
    """With a link back and the header of allowed methods."""
    answer = client.post("/taps")
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]
    assert "All channels" in Tags(answer.text).text


def test_unexpected_error_is_a_page_or_json(client: httpx.Client, stage: Any) -> None:
    """Neither has internal details."""
    stage.snapshot = None
    for path in ("/", "/runbooks/SdsLoss"):
        answer = client.get(path)
        assert answer.status_code == 500
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        tags = Tags(answer.text)
        assert "The server failed to answer" in tags.text
        (back,) = [attrs["href"] for tag, attrs in tags.found if tag == "a"]
        assert answer.url.join(str(back)).path == "/"
    answer = client.get("/api/v1/channels")
    assert answer.status_code == 500
    assert answer.json()["error"].startswith("the server failed to answer")


@pytest.mark.parametrize(
    ("method", "path", "status", "why"),
    [
        ("GET", "/api/v1/audit?foo=1", 400, "no parameter has the name foo"),
        ("GET", "/api/v1/openapi.json?foo=1", 400, "no parameter has the name foo"),
        ("GET", "/api/v1/nothing", 404, "nothing was found at this address"),
        ("POST", "/api/v1/audit", 405, "this address accepts only GET requests"),
        ("GET", "/nothing", 404, "nothing was found at this address"),
        ("POST", "/metrics", 405, "this address accepts only GET requests"),
    ],
)
def test_audit_refuses_as_the_monitor_does(
    client: httpx.Client, switch: Any, method: str, path: str, status: int, why: str
) -> None:
    """In JSON below ``/api``, else in text."""
    switch.app = create_audit_app(AuditFigures())
    answer = client.request(method, path)
    assert answer.status_code == status
    if path.startswith("/api"):
        assert answer.json()["error"].startswith(why)
    else:
        assert answer.text == f"{why}\n"
    assert ("allow" in answer.headers) == (status == 405)


def test_unexpected_error_of_an_audit_is_json(
    client: httpx.Client, switch: Any
) -> None:
    """As the description of its API says."""
    switch.app = create_audit_app(None)  # type: ignore[arg-type]
    answer = client.get("/api/v1/audit")
    assert answer.status_code == 500
    assert answer.json()["error"].startswith("the server failed to answer")
    answer = client.get("/readyz")
    assert answer.status_code == 500
    assert answer.text.startswith("the server failed to answer")


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
def test_unexpected_error_of_metrics_or_a_probe_is_text(
    client: httpx.Client, stage: Any, path: str
) -> None:
    """As the description of the API says: no person reads a page there."""
    stage.snapshot = None
    answer = client.get(path)
    assert answer.status_code == 500
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text == "the server failed to answer: see the error in its log\n"
    answer = client.post(path)
    assert answer.status_code == 405
    assert answer.text == "this address accepts only GET requests\n"


class SlowSnapshot:
    """A snapshot that takes until `end` to be had.

    Attributes:
        asked: Whether somebody wants it.
        end: Set it to have it given.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.end = threading.Event()

    def __call__(self) -> Snapshot:
        """Wait and give it."""
        self.asked.set()
        assert self.end.wait(60)
        return snapshot_of(primed=True)


@pytest.fixture
def slow(server: WebServer, switch: Any, tmp_path: Path) -> Iterator[SlowSnapshot]:
    """What the server shows."""
    current = SlowSnapshot()
    sources = Sources(current, stored(), tmp_path)
    switch.app = create_app(sources, CollectorRegistry())
    yield current
    current.end.set()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/taps",
        "/monitor",
        "/api/v1/channels",
        "/api/v1/channels/a",
        "/api/v1/taps",
    ],
)
def test_slow_view_does_not_delay_the_probe(
    slow: SlowSnapshot, server: WebServer, path: str
) -> None:
    """A busy monitor must not be restarted."""
    request = threading.Thread(target=httpx.get, args=[f"{server.url}{path}"])
    request.start()
    try:
        assert slow.asked.wait(30)
        assert httpx.get(f"{server.url}/healthz", timeout=30).status_code == 200
    finally:
        slow.end.set()
        request.join()
