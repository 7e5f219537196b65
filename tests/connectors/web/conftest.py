"""Made-up snapshots, and an application whose snapshot a test replaces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from connectors.history.errors import NoHistory
from connectors.history.schema import Row
from connectors.prometheus.collector import PlanCollector, SnapshotCollector
from connectors.prometheus.firing import FiringAlerts
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources, TraceQuestion
from sds_core.observer.growth import Recorded
from sds_core.observer.histogram import Histogram
from sds_core.observer.incidents import ChannelIncident, IncidentKind, IncidentQuery
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.shown_verdicts import ShownVerdict
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.verdict import Verdict
from sds_core.planning.hours import hour_rows
from sds_core.planning.plan import Plan
from sds_core.trace.trace import Trace
from tests.support.snapshots import snapshot_of
from tests.support.trace.hostile import hostile_trace
from tests.support.web.browser import browser, complaints, page
from tests.support.web.busy import busy

__all__ = ["browser", "busy", "complaints", "page"]

CLOCK_MS = 1_786_276_990_123
"""Of every snapshot: 2026-08-09 12:03:10 UTC."""


def make_totals(verdict: Verdict = Verdict.OK, **figures: Any) -> ChannelTotals:
    """A channel with a verdict, its reason being the verdict's own name."""
    return ChannelTotals(verdict=verdict, **({"verdict_reason": verdict} | figures))


def make_snapshot(
    channels: dict[str, ChannelTotals] | None = None, **job: Any
) -> Snapshot:
    """A primed snapshot of a job that runs and is not behind."""
    running = {
        "running": True,
        "event_time_lag_seconds": 1.25,
        "version": "1.2.3",
        "rules": "compiled",
    }
    channels = channels or {}
    return snapshot_of(
        primed=True,
        clock_ms=CLOCK_MS,
        channels=channels,
        labels=tuple(channels),
        job=JobFigures(**(running | job)),
    )


@dataclass
class Stage:
    """An application and what it shows.

    Attributes:
        snapshot: Replace it to change what is shown.
        runbooks: Directory of runbooks, empty at first.
        incidents: What the store of incidents has.
        asked: What it was asked for.
        minutes: Rows of the only channel that has any.
        hours_asked: Since when its hours were asked for, Unix ms.
        has_history: Whether there is one.
        recent: Figures of channels at ends of minutes, in order.
        firing: The alerts that fire.
        shown: Rows of the verdicts that were shown, by channel.
        shown_until_ms: Until when they are known, Unix ms.
        plans: Forecasts by prefix of their kind.
        trace: Makes traces.
    """

    snapshot: Snapshot
    runbooks: Path
    incidents: list[ChannelIncident] = field(default_factory=list)
    asked: list[IncidentQuery] = field(default_factory=list)
    minutes: list[Row] = field(default_factory=list)
    hours_asked: list[int] = field(default_factory=list)
    has_history: bool = True
    recent: dict[str, list[Recorded]] = field(default_factory=dict)
    firing: FiringAlerts = field(default_factory=FiringAlerts)
    shown: dict[str, list[ShownVerdict]] = field(default_factory=dict)
    shown_until_ms: int | None = None
    plans: dict[str, Plan] = field(default_factory=dict)
    trace: Callable[[TraceQuestion], Trace] = lambda question: hostile_trace()

    @property
    def app(self) -> Starlette:
        """The application over this stage."""
        registry = CollectorRegistry()
        registry.register(SnapshotCollector(lambda: self.snapshot))
        registry.register(PlanCollector(lambda: self.snapshot, lambda: self.plans))
        sources = Sources(
            lambda: self.snapshot,
            lambda: {"sds": self},
            self.runbooks,
            lambda: self.firing,
            lambda: self.plans,
            lambda question: self.trace(question),
        )
        return create_app(sources, registry)

    def find_incidents(self, query: IncidentQuery) -> list[ChannelIncident]:
        """The store: all but times, in the order of the list."""
        self._check()
        self.asked.append(query)
        kinds = [query.kind] if query.kind else list(IncidentKind)
        unwanted = {False: query.resolved, True: query.standing}
        found = [
            one
            for one in self.incidents
            if query.channel in (None, one.channel)
            and one.incident.kind in kinds
            and not unwanted[one.incident.ended_ms is not None]
            and (query.participant is None or one.incident.is_lacked(query.participant))
        ]
        if query.after is not None:
            _, *last = query.after
            keys = [[one.channel, *one.incident.key] for one in found]
            found = found[keys.index(last) + 1 :]
        return found[: query.limit]

    def find_minutes(
        self, channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> list[Row]:
        """The history."""
        self._check()
        return [row for row in self.minutes if since_ms <= row["minute"] < until_ms]

    def find_hours(
        self,
        channel: str,
        since_ms: int,
        until_ms: int,
        counters: Collection[str],
        gauges: Sequence[str],
    ) -> list[Row]:
        """The hours of the history."""
        self.hours_asked.append(since_ms)
        fields = [*counters, *gauges]
        return hour_rows(self.find_minutes(channel, since_ms, until_ms, fields), gauges)

    def find_recent(self, at_ms: int) -> dict[str, Recorded]:
        """The last of `recent` at a moment, or the oldest."""
        return {
            name: next((r for r in some[::-1] if r.end_ms <= at_ms), some[0])
            for name, some in self.recent.items()
        }

    def find_steps(
        self, channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
    ) -> dict[str, list[Recorded]]:
        """The last of `recent` in each step."""
        return {
            name: list(
                {
                    (one.end_ms - since_ms - 1) // step_ms: one
                    for one in self.recent.get(name, ())
                    if since_ms < one.end_ms <= until_ms
                }.values()
            )
            for name in channels
        }

    def find_verdicts(
        self, channels: Collection[str], since_ms: int, until_ms: int
    ) -> dict[str, list[ShownVerdict]]:
        """All rows, as if they were stored; old ones are in the history alone."""
        if since_ms == 0:
            self._check()
        return {name: self.shown.get(name, []) for name in channels}

    def verdicts_until_ms(self) -> int | None:
        """When the page was looked at last."""
        return self.shown_until_ms

    def _check(self) -> None:
        if not self.has_history:
            raise NoHistory(Path("nowhere"), None)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A stage without channels."""
    return Stage(make_snapshot(), tmp_path)


class Switch:
    """An application that hands each request to the stage of the test under way."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self.app(scope, receive, send)


@pytest.fixture(scope="session")
def switch() -> Switch:
    """What the server serves."""
    return Switch()


@pytest.fixture(scope="session")
def server(switch: Switch) -> Iterator[WebServer]:
    """One server for all tests: its end takes longer than most of them."""
    with WebServer(switch, port=0) as running:
        yield running


@pytest.fixture
def served(stage: Stage, switch: Switch, server: WebServer) -> str:
    """Where the stage is served over a real socket."""
    switch.app = stage.app
    return server.url


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
