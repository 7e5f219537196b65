"""Where an Alertmanager tells a test of alerts."""

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
    """What it was told.

    Attributes:
        url: Where it listens.
        told: Every alert of every notification, in the order in which they came.
    """

    url: str
    told: list[Alert] = field(default_factory=list)

    @property
    def firing(self) -> list[Alert]:
        """Each alert that was told to fire, as it was told last."""
        return self._latest("firing")

    @property
    def resolved(self) -> list[Alert]:
        """Each alert of which the last word is that it is over."""
        by_labels = {_key(alert): alert for alert in list(self.told)}
        return [one for one in by_labels.values() if one["status"] == "resolved"]

    def _latest(self, status: str) -> list[Alert]:
        told = (alert for alert in list(self.told) if alert["status"] == status)
        return list({_key(alert): alert for alert in told}.values())


@contextmanager
def listening_webhook() -> Iterator[Webhook]:
    """A webhook on this machine until the block ends."""

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


def _key(alert: Alert) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(alert["labels"].items()))
