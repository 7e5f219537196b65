"""A webhook to which an Alertmanager sends a test's alerts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Alert = dict[str, Any]
"""One alert of a notification: its status, labels, annotations and times."""


@dataclass
class Webhook:
    """A webhook with the alerts that it got.

    Attributes:
        url: Where it listens.
        told: Every alert of every notification, in the order in which they came.
    """

    url: str
    told: list[Alert] = field(default_factory=list)


@contextmanager
def listening_webhook() -> Iterator[Webhook]:
    """Run a webhook on this machine until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            webhook.told.extend(json.loads(self.rfile.read(length))["alerts"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        webhook = Webhook(f"http://127.0.0.1:{server.server_port}/")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield webhook
        finally:
            server.shutdown()
            thread.join()
