"""Scrapes and probes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from connectors.web import words
from sds_core.observer.freshness import Freshness, MissingTopic
from sds_core.observer.snapshot import Snapshot
from tests.support.snapshots import snapshot_of

MakeSnapshot = Callable[..., Snapshot]


@pytest.mark.parametrize(
    ("accept", "content_type", "end"),
    [
        ("*/*", "text/plain; version=0.0.4; charset=utf-8", "} 1.0\n"),
        (
            "application/openmetrics-text; version=1.0.0",
            "application/openmetrics-text; version=1.0.0; charset=utf-8; "
            "escaping=underscores",
            "# EOF\n",
        ),
    ],
)
def test_scrape_has_the_accepted_format(
    client: httpx.Client, accept: str, content_type: str, end: str
) -> None:
    """The Accept header decides between Prometheus text and OpenMetrics."""
    answer = client.get("/metrics", headers={"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == content_type
    assert 'sds_monitor_build_info{rules="compiled",version="1.2.3"}' in answer.text
    assert answer.text.endswith(end)


def test_process_is_healthy_whatever_the_query_does(
    client: httpx.Client, stage: Any
) -> None:
    """A restart would not help a query that waits for its broker."""
    stage.snapshot = snapshot_of()
    assert client.get("/healthz").status_code == 200


def test_ready_while_primed_and_running(client: httpx.Client) -> None:
    """The probe answers 200."""
    answer = client.get("/readyz")
    assert (answer.status_code, answer.text) == (200, "ready\n")


@pytest.mark.parametrize(
    ("primed", "job", "reason"),
    [
        (False, {}, "the monitor has not read the totals of its checkpoint yet"),
        (False, {"kafka": Freshness(asked_ms=7)}, "Kafka has not answered yet"),
        (True, {"running": False}, "the query is not running"),
        (
            True,
            {"running": False, "error": "no broker\nat all"},
            "the query stopped: no broker at all",
        ),
        (
            True,
            {"kafka": Freshness(1_786_276_990_123, 1.0, 15.1, "no\nbroker")},
            "Kafka has not answered since 2026-08-09 12:03:10 UTC (no broker)",
        ),
        (
            True,
            {
                "error": "no topic",
                "missing_topic": MissingTopic("frames", 1_786_276_990_123),
            },
            "Topic frames has been missing since 2026-08-09 12:03:10 UTC: "
            f"{words.TOPIC_REMEDY}",
        ),
        (
            False,
            {"kafka": Freshness(None, 1.0, 15.1, "no broker", 1_786_276_990_123)},
            "Kafka has not answered since the start at 2026-08-09 12:03:10 UTC "
            "(no broker)",
        ),
    ],
)
def test_not_ready_says_why_in_one_line(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    primed: bool,
    job: dict[str, object],
    reason: str,
) -> None:
    """Each obstacle is a 503 with its reason."""
    stage.snapshot = replace(snapshot(**job), primed=primed)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.text) == (503, f"not ready: {reason}\n")
