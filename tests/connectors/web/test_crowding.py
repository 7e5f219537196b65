"""Clients that ask for more than can be answered at once."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import httpx
import pytest

from connectors.web.crowding import MOST_REQUESTS, THREADS
from sds_core.observer.snapshot import Snapshot
from tests.support.waiting import wait_for


def test_clients_that_ask_and_leave_pile_up_no_work(
    served: str, stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond a limit requests are refused at once, but never the probe."""
    end = threading.Event()
    snapshot: Snapshot = stage.snapshot

    reading = []

    def read(_: object) -> Snapshot:
        reading.append(threading.get_ident())
        assert end.wait(120)
        return snapshot

    monkeypatch.setattr(type(stage), "snapshot", property(read), raising=False)
    try:
        refused = None
        for _ in range(10 * MOST_REQUESTS):
            with suppress(httpx.TimeoutException):
                refused = httpx.get(f"{served}/api/v1/taps", timeout=0.05)
                break
        assert refused is not None
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) > 0
        why = "too many requests at once: try again in a few seconds"
        assert refused.json() == {"error": why}
        page = httpx.get(f"{served}/", timeout=60)
        assert (page.status_code, page.text) == (503, f"{why}\n")
        assert len(reading) == THREADS
        assert httpx.get(f"{served}/healthz", timeout=60).status_code == 200
    finally:
        end.set()
    wait_for(lambda: httpx.get(f"{served}/", timeout=60).status_code == 200)
