"""What the monitor reads of a repeated audit."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from connectors.web.audit_poll import AuditPoll
from connectors.web.server import WebServer
from connectors.web.side_apps import NEWEST, create_audit_app
from sds_core.audit.figures import AuditFigures
from sds_core.audit.result import AuditedMessage, AuditResult
from sds_core.observer.snapshot import NO_AUDIT
from tests.support.waiting import wait_for

MISSING = (
    AuditedMessage(5_000_000, b"a" * 32, channel="town"),
    AuditedMessage(9_000_000, b"b" * 32, channel="town"),
    AuditedMessage(7_000_000, b"c" * 32),
)


def result(remirrored: int = 0) -> AuditResult:
    """An audit that found messages missing."""
    return AuditResult("store", 1, 10_000_000, 4, 7, MISSING, (), 0, remirrored)


def test_the_newest_result_is_read_again_and_again() -> None:
    """The newest message of each channel; none once they were mirrored again."""
    figures = AuditFigures()
    with (
        WebServer(create_audit_app(figures), "127.0.0.1", 0) as server,
        AuditPoll(server.url + "/", poll_s=0.01) as audit,
    ):
        time.sleep(0.1)
        assert audit() == NO_AUDIT
        figures.ended(result(), 1)
        wait_for(lambda: audit().newest_missing_ms == {"town": 9, "": 7})
        assert audit().missing_ms("town") == 9
        assert audit().missing_ms("village") == 7
        figures.ended(result(remirrored=3), 2)
        wait_for(lambda: audit() == NO_AUDIT)


def test_while_the_audit_does_not_answer_its_last_result_counts() -> None:
    """As nothing else is known."""
    figures = AuditFigures()
    figures.ended(result(), 1)
    with WebServer(create_audit_app(figures), "127.0.0.1", 0) as server:
        poll = AuditPoll(server.url, poll_s=0.01)
        with poll:
            wait_for(lambda: poll() != NO_AUDIT)
            server.stop()
            time.sleep(0.1)
            assert poll().missing_ms("town") == 9


def test_certificates_that_are_missing_for_a_moment_end_no_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says why a request failed; a later one has the certificates again."""
    figures = AuditFigures()
    with (
        WebServer(create_audit_app(figures), "127.0.0.1", 0) as server,
        AuditPoll(server.url, poll_s=0.01) as audit,
    ):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        wait_for(lambda: "check SSL_CERT_FILE" in caplog.text)
        monkeypatch.delenv("SSL_CERT_FILE")
        figures.ended(result(), 1)
        wait_for(lambda: audit() != NO_AUDIT)


def test_answer_that_is_nested_too_deeply_does_not_end_the_poll(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log says why it cannot be read."""
    nested = PlainTextResponse('{"x":' + "[" * 10_000 + "]" * 10_000 + "}")
    app = Starlette(routes=[Route(NEWEST, lambda _: nested)])
    with (
        WebServer(app, "127.0.0.1", 0) as server,
        AuditPoll(server.url, poll_s=0.01) as audit,
    ):
        wait_for(lambda: "maximum recursion depth" in caplog.text)
        assert audit() == NO_AUDIT


def test_nobody_is_asked_without_an_audit() -> None:
    """And other programs are no audit."""
    with AuditPoll(None) as audit:
        assert audit() == NO_AUDIT
    with AuditPoll("http://127.0.0.1:1", poll_s=0.01) as audit:
        time.sleep(0.05)
        assert audit() == NO_AUDIT
