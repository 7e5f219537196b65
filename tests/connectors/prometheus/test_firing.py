"""Alerts that fire, as Prometheus reports them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from connectors.prometheus.firing import (
    FiringAlert,
    FiringAlerts,
    FiringPoll,
    ask,
    firing_of,
)
from tests.support.prometheus import running_prometheus
from tests.support.waiting import wait_for


def alert(name: str, state: str = "firing", **labels: str) -> dict[str, Any]:
    """An alert as Prometheus gives it."""
    return {
        "labels": {"alertname": name, "job": "sds-monitor", **labels},
        "annotations": {"summary": f"{name} happened.", "description": "x"},
        "state": state,
        "activeAt": "2026-08-09T12:00:00.5Z",
        "value": "1e+00",
    }


def answer(*alerts: dict[str, Any]) -> bytes:
    """The body of an answer of Prometheus."""
    content = {"status": "success", "data": {"alerts": alerts}}
    return json.dumps(content).encode()


LOST = alert("SdsMessagesLost", severity="critical", channel="town")
"""An alert on a channel."""


def test_only_firing_alerts_of_ours_are_listed_the_gravest_first() -> None:
    """Neither pending ones nor those of others."""
    body = answer(
        alert("SdsTapSilent", severity="warning"),
        alert("SdsTapBlind", state="pending", severity="critical"),
        alert("DiskFull", severity="critical"),
        LOST,
        alert("MvdsTapBlind", severity="info"),
    )
    assert firing_of(body) == [
        FiringAlert(
            "SdsMessagesLost",
            "critical",
            "town",
            "SdsMessagesLost happened.",
            "2026-08-09T12:00:00.5Z",
        ),
        FiringAlert(
            "SdsTapSilent",
            "warning",
            "",
            "SdsTapSilent happened.",
            "2026-08-09T12:00:00.5Z",
        ),
        FiringAlert(
            "MvdsTapBlind",
            "info",
            "",
            "MvdsTapBlind happened.",
            "2026-08-09T12:00:00.5Z",
        ),
    ]


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"data": {"alerts": 1}}'])
def test_answer_of_another_server_is_refused(body: bytes) -> None:
    """Its form is checked."""
    with pytest.raises(msgspec.DecodeError):
        firing_of(body)


class Server:
    """A server that gives one answer.

    Attributes:
        url: Its URL.
        status, body: The answer; may be changed.
    """

    def __init__(self) -> None:
        server = self
        self.status, self.body = 200, answer(LOST)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/prefix/api/v1/alerts":
                    server.status = 404
                self.send_response(server.status)
                self.end_headers()
                self.wfile.write(server.body)

            def log_message(self, *_: Any) -> None:
                """Write nothing."""

        self._http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/prefix/"
        self._thread = Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop to listen."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    """A server at which an alert fires."""
    made = Server()
    yield made
    made.stop()


def test_failure_to_ask_is_reported_in_words(server: Server) -> None:
    """An error, another server, no server: the alerts are not known."""
    assert [one.name for one in ask(server.url).alerts] == ["SdsMessagesLost"]
    for body in (b"hello", b'{"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}"):
        server.body = body
        other = FiringAlerts((), True, "what answers is not Prometheus")
        assert ask(server.url) == other
    server.status = 503
    wrong = FiringAlerts((), True, "Prometheus answers with an error (503)")
    assert ask(server.url) == wrong
    gone = FiringAlerts((), True, "Prometheus does not answer")
    assert ask("http://127.0.0.1:1") == gone
    assert ask("no URL") == gone


def test_alerts_are_unknown_until_the_first_answer(server: Server) -> None:
    """The page must not say that no alert fires."""
    poll = FiringPoll(server.url)
    assert poll().asked
    assert "has not answered yet" in poll().problem
    assert FiringPoll(None)() == FiringAlerts()


def test_alerts_are_asked_for_again_and_again(server: Server) -> None:
    """While the block runs; without a Prometheus nothing is asked."""
    with FiringPoll(server.url, poll_s=0.01) as firing:
        wait_for(lambda: len(firing().alerts) == 1)
        server.body = answer()
        wait_for(lambda: firing() == FiringAlerts([], asked=True))
    with FiringPoll(None) as firing:
        assert firing() == FiringAlerts()


def test_certificates_that_are_missing_for_a_moment_end_no_poll(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request fails; a later one has them again."""
    with FiringPoll(server.url, poll_s=0.01) as firing:
        wait_for(lambda: firing().alerts)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        wait_for(lambda: firing().problem == "Prometheus does not answer")
        monkeypatch.delenv("SSL_CERT_FILE")
        wait_for(lambda: firing().alerts)


@pytest.mark.needs("prometheus")
def test_real_prometheus_says_which_alerts_fire(tmp_path: Path) -> None:
    """One that fires, one that does not yet, and one of somebody else."""
    rules = [
        {
            "alert": name,
            "expr": 'label_replace(vector(1), "channel", "town", "", "")',
            **held,
            "labels": {"severity": "warning"},
            "annotations": {"summary": "Something is lost."},
        }
        for name, held in (
            ("SdsMessagesLost", {}),
            ("SdsTapBlind", {"for": "1h"}),
            ("Other", {}),
        )
    ]
    group = {"name": "test", "interval": "1s", "rules": rules}
    with running_prometheus(
        tmp_path / "prometheus", {}, {"test": {"groups": [group]}}, lookback_s=300
    ) as prometheus:
        url = str(prometheus.http.base_url)
        found = wait_for(lambda: ask(url).alerts)
    (only,) = found
    assert only[:-1] == ("SdsMessagesLost", "warning", "town", "Something is lost.")
