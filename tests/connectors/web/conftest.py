"""Made-up snapshots, and an application whose snapshot a test replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette

from connectors.prometheus.collector import SnapshotCollector
from connectors.web.app import create_app
from connectors.web.server import WebServer
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.totals import ChannelTotals, Histogram, Verdict


def make_totals(verdict: Verdict = Verdict.OK, **figures: Any) -> ChannelTotals:
    """A channel with a verdict, its reason being the verdict's own name."""
    return ChannelTotals(verdict=verdict, **({"verdict_reason": verdict} | figures))


def make_snapshot(
    channels: dict[str, ChannelTotals] | None = None, **job: Any
) -> Snapshot:
    """A primed snapshot of a job that runs and is not behind."""
    running = {"running": True, "event_time_lag_seconds": 1.25, "version": "1.2.3"}
    channels = channels or {}
    return Snapshot(
        primed=True,
        clock_ms=1_786_276_990_123,
        channels=channels,
        labels=tuple(channels),
        job=JobFigures(**(running | job)),
    )


@dataclass
class Stage:
    """An application and what it shows.

    Attributes:
        snapshot: Replace it to change what is shown.
        app: The application.
        incidents: What the store of incidents gives, whatever it is asked for.
        asked: What it was asked for.
    """

    snapshot: Snapshot
    app: Starlette
    incidents: list[ChannelIncident] = field(default_factory=list)
    asked: list[IncidentQuery] = field(default_factory=list)

    def find_incidents(self, query: IncidentQuery) -> list[ChannelIncident]:
        """The store: it keeps to the limit, and leaves the rest to other tests."""
        self.asked.append(query)
        return self.incidents[: query.limit]


@pytest.fixture
def stage() -> Stage:
    """An application over a snapshot without channels."""
    registry = CollectorRegistry()
    app = create_app(
        lambda: made.snapshot, lambda query: made.find_incidents(query), registry
    )
    made = Stage(make_snapshot(), app)
    registry.register(SnapshotCollector(lambda: made.snapshot))
    return made


@pytest.fixture
def served(stage: Stage) -> Iterator[str]:
    """Where the stage is served over a real socket."""
    with WebServer(stage.app, port=0) as server:
        yield server.url


@pytest.fixture
def client(served: str) -> Iterator[httpx.Client]:
    """A client of the stage."""
    with httpx.Client(base_url=served) as made:
        yield made


@pytest.fixture
def totals() -> Callable[..., ChannelTotals]:
    """`make_totals`: figures of one channel."""
    return make_totals


@pytest.fixture
def snapshot() -> Callable[..., Snapshot]:
    """`make_snapshot`: a snapshot of a healthy job."""
    return make_snapshot


@pytest.fixture
def histogram() -> Callable[..., Histogram]:
    """From durations in milliseconds to their histogram."""

    def make(*durations_ms: int) -> Histogram:
        made = Histogram()
        for duration_ms in durations_ms:
            made.observe(duration_ms)
        return made

    return make
