"""Pages that are made to keep a whole mirror busy."""

from __future__ import annotations

import gzip
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from connectors.waku_rest.client import MAX_ANSWER_BYTES
from connectors.waku_rest.json_list import MAX_MARKS
from tests.support.kafka import TopicMaker, free_port
from tests.support.server_program import running
from tests.support.waiting import wait_for
from tests.support.waku_rest.rig import SHARD

pytestmark = pytest.mark.kafka

_ESCAPES = b"\\a" * (MAX_MARKS - 100)
_PAGE = b'["%b%b"]' % (_ESCAPES, b"a" * (MAX_ANSWER_BYTES - len(_ESCAPES) - 4))
"""The longest page, with the most characters that have a meaning in JSON."""


class HostileNode(ThreadingHTTPServer):
    """A node that answers every read with the same bytes.

    Attributes:
        asked: Number of reads that were begun.
        given: Number of answers to them that were sent.
    """

    def __init__(self, body: bytes, encoding: str) -> None:
        self.asked = self.given = 0
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(b"OK", "identity")

            def do_GET(self) -> None:
                node.asked += 1
                self._answer(body, encoding)
                node.given += 1

            def log_message(self, *arguments: Any) -> None:
                """Say nothing."""

            def _answer(self, content: bytes, coding: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Encoding", coding)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a mirror that ends breaks its reads off."""


@contextmanager
def hostile_node(body: bytes, encoding: str) -> Iterator[HostileNode]:
    """Run a node until the block ends."""
    with HostileNode(body, encoding) as node:
        thread = threading.Thread(target=node.serve_forever, daemon=True)
        thread.start()
        yield node
        node.shutdown()
        thread.join()


def test_mirror_answers_its_probe_while_it_reads_the_largest_page(
    kafka_topic: TopicMaker, tmp_path: Path
) -> None:
    """Which arrives as some ten kilobytes."""
    kafka = kafka_topic().settings
    address = f"127.0.0.1:{(port := free_port())}"
    with hostile_node(gzip.compress(_PAGE), "gzip") as node:
        command = [
            *(sys.executable, "-m", "streaming.cli", "mirror", "--rest", node.url),
            *("--pubsub-topic", SHARD, "--poll-interval", "0.01"),
            *("--bootstrap", kafka.bootstrap, "--topic", kafka.topic),
            *("--state", str(tmp_path / "state"), "--metrics-port", str(port)),
        ]
        probe = f"http://{address}/healthz"
        with (
            running(command, probe, tmp_path / "log"),
            httpx.Client(timeout=60) as client,
        ):

            def answers_again_and_again() -> bool:
                """Whether it answers five times between a page and the next read."""
                page, count = wait_for(lambda: node.given), 0
                while node.asked == page and count < 5:
                    assert client.get(probe).status_code == httpx.codes.OK
                    count += 1
                return count == 5

            assert any(answers_again_and_again() for _ in range(3))
