"""Scrapes and probes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from connectors.web import words
from connectors.web.server import WebServer
from connectors.web.side_apps import (
    create_audit_app,
    create_mirror_app,
    create_serving_app,
)
from sds_core.audit.figures import AuditFigures
from sds_core.audit.serving_figures import ServingFigures
from sds_core.mirror.figures import MirrorFigures
from sds_core.observer.freshness import Freshness, MissingTopic
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from tests.support.snapshots import snapshot_of

MakeSnapshot = Callable[..., Snapshot]


def samples(text: str) -> list[str]:
    """The lines of an answer that have values."""
    return [line for line in text.splitlines() if not line.startswith("#")]


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


@pytest.mark.parametrize("accept", ["*/*", "application/openmetrics-text"])
@pytest.mark.parametrize(
    ("names", "series"),
    [
        (["sds_monitor_ok"], {"sds_monitor_ok"}),
        (["sds_messages_total"], {"sds_messages_total"}),
        (["sds_messages"], {"sds_messages_total"}),
        (["sds_monitor_build_info"], {"sds_monitor_build_info"}),
        (
            ["sds_ack_latency_seconds"],
            {f"sds_ack_latency_seconds_{end}" for end in ("bucket", "count", "sum")},
        ),
        (["sds_ack_latency_seconds_count"], {"sds_ack_latency_seconds_count"}),
        (
            [
                "sds_messages_total",
                "sds_unknown",
                "sds_dependencies_missing",
                "sds_messages_total",
            ],
            {"sds_dependencies_missing", "sds_messages_total"},
        ),
        (["sds_unknown", "sds_message", ""], set()),
    ],
)
def test_scrape_returns_only_the_named_metrics(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    accept: str,
    names: list[str],
    series: set[str],
) -> None:
    """By the name of the metric, as docs/metrics.md has it, or of one of its series."""
    stage.snapshot = snapshot({"town": ChannelTotals(messages=7)})
    headers = {"Accept": accept}
    whole = client.get("/metrics", headers=headers).text
    expected = [line for line in samples(whole) if re.split("[{ ]", line)[0] in series]
    named = client.get("/metrics", params={"name[]": names}, headers=headers)
    assert named.status_code == 200
    assert samples(named.text) == expected
    assert {re.split("[{ ]", line)[0] for line in expected} == series
    assert len(re.findall("^# TYPE ", named.text, re.MULTILINE)) == len(
        {re.sub("_(bucket|count|sum)$", "", one) for one in series}
    )


@pytest.mark.parametrize(
    ("app", "names", "lines"),
    [
        (
            create_mirror_app(MirrorFigures()),
            ["sds_mirror_written_total", "sds_mirror_paused", "sds_audit_runs_total"],
            ["sds_mirror_written_total 0.0", "sds_mirror_paused 0.0"],
        ),
        (
            create_audit_app(AuditFigures()),
            ["sds_audit_remirrored", "sds_mirror_paused"],
            ["sds_audit_remirrored_total 0.0"],
        ),
        (
            create_serving_app(ServingFigures()),
            ["sds_audit_serve_refused_total"],
            ["sds_audit_serve_refused_total 0.0"],
        ),
    ],
    ids=["mirror", "audit", "audit serve"],
)
def test_other_programs_return_only_the_named_metrics(
    switch: Any, server: WebServer, app: Starlette, names: list[str], lines: list[str]
) -> None:
    """As the monitor does."""
    switch.app = app
    text = httpx.get(f"{server.url}/metrics", params={"name[]": names}).text
    assert samples(text) == lines


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip", "gzip"),
        ("br, GZIP ; q=0.001", "gzip"),
        ("gzip;q=1.0", "gzip"),
        ("gzip;q=0", None),
        ("identity, gzip ; Q = 0.000", None),
        ("br", None),
        ("", None),
    ],
)
def test_scrape_is_compressed_only_if_the_client_accepts_it(
    client: httpx.Client, accepted: str, encoding: str | None
) -> None:
    """The weight 0 refuses a coding (RFC 9110, 12.4.2)."""
    answer = client.get("/metrics", headers={"Accept-Encoding": accepted})
    assert answer.headers.get("content-encoding") == encoding
    assert "sds_monitor_ok" in answer.text


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz"])
def test_no_cache_stores_metrics_or_probes(
    client: httpx.Client, switch: Any, path: str
) -> None:
    """The status of yesterday would hide today's."""
    assert client.get(path).headers["cache-control"] == "no-store"
    switch.app = create_mirror_app(MirrorFigures())
    for one in (path, "/nothing"):
        assert client.get(one).headers["cache-control"] == "no-store"


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
