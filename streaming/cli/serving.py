"""Server of page, API and metrics; it runs before the job starts and after its end."""

from __future__ import annotations

import threading
import time
from collections.abc import (
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from types import MappingProxyType
from typing import Protocol

import click
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette

from connectors.history.schema import Row
from connectors.prometheus.collector import SnapshotCollector
from connectors.prometheus.firing import FiringPoll
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources, StoredViews
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.freshness import Arrivals
from sds_core.observer.growth import Recorded
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.shown_verdicts import ShownVerdict
from sds_core.observer.snapshot import Snapshot
from streaming.board import Board
from streaming.cli.output import wall_ms
from streaming.job import Job

Clock = Callable[[], int]
"""Returns wall time, Unix ms."""


class JobView(Protocol):
    """Interface of a job for the server; `Job` and `PendingJob` implement it."""

    @property
    def board(self) -> Board:
        """The newest figures of the job."""

    @property
    def has_begun(self) -> bool:
        """Whether incidents and minutes can be queried."""

    def find_incidents(self, query: IncidentQuery) -> Sequence[ChannelIncident]:
        """See `Sources.find_incidents`."""

    def find_minutes(
        self, channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> Sequence[Row]:
        """See `Sources.find_minutes`."""

    def find_recent(self, at_ms: int) -> Mapping[str, Recorded]:
        """See `Sources.find_recent`."""

    def find_steps(
        self, channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
    ) -> Mapping[str, Sequence[Recorded]]:
        """See `Sources.find_steps`."""

    def find_verdicts(
        self, channels: Collection[str], since_ms: int, until_ms: int
    ) -> Mapping[str, Sequence[ShownVerdict]]:
        """See `Sources.find_verdicts`."""

    def verdicts_until_ms(self) -> int | None:
        """See `Sources.verdicts_until_ms`."""

    @property
    def others(self) -> Mapping[str, StoredViews]:
        """See `Sources.others`."""


class PendingJob:
    """A job that is served before it runs; until then it has no incidents or minutes.

    Attributes:
        board: Board for the figures of the job.
        job: The job; None before it runs.
    """

    def __init__(self) -> None:
        self.board = Board()
        self.job: Job | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the job runs, or has run."""
        return self.job is not None

    def find_incidents(self, query: IncidentQuery) -> Sequence[ChannelIncident]:
        """See `Job`; empty before the job runs."""
        return [] if self.job is None else self.job.find_incidents(query)

    def find_minutes(
        self, channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> Sequence[Row]:
        """See `Job`; empty before the job runs."""
        if self.job is None:
            return []
        return self.job.find_minutes(channel, since_ms, until_ms, fields)

    def find_recent(self, at_ms: int) -> Mapping[str, Recorded]:
        """See `Job`; empty before the job runs."""
        return {} if self.job is None else self.job.find_recent(at_ms)

    def find_steps(
        self, channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
    ) -> Mapping[str, Sequence[Recorded]]:
        """See `Job`; empty before the job runs."""
        if self.job is None:
            return {}
        return self.job.find_steps(channels, since_ms, until_ms, step_ms)

    def find_verdicts(
        self, channels: Collection[str], since_ms: int, until_ms: int
    ) -> Mapping[str, Sequence[ShownVerdict]]:
        """See `Job`; empty before the job runs."""
        if self.job is None:
            return {}
        return self.job.find_verdicts(channels, since_ms, until_ms)

    def verdicts_until_ms(self) -> int | None:
        """See `Job`; None before the job runs."""
        return None if self.job is None else self.job.verdicts_until_ms()

    @property
    def others(self) -> Mapping[str, StoredViews]:
        """See `Job`; empty before the job runs."""
        return {} if self.job is None else self.job.others


def current_snapshot(
    board: Board,
    clock: Clock = wall_ms,
    monotonic_s: Callable[[], float] = time.monotonic,
    *,
    played: bool = False,
) -> Snapshot:
    """Return the newest figures as of now.

    Wall time decides which channels are muted. The monotonic clock decides whether
    Kafka still answers, and whether the whole topic has fallen silent.

    Args:
        board: Has the figures.
        clock: Returns wall time.
        monotonic_s: Monotonic clock, seconds.
        played: Whether the traffic is played from the past and ends: its silence and
            its distance from wall time say nothing of taps.
    """
    snapshot, now_ms = board.snapshot.as_of(monotonic_s()), clock()
    if played:
        job = snapshot.job
        clocks = replace(job.clock, taps=MappingProxyType({}))
        job = replace(job, arrivals=Arrivals(), clock=clocks)
        snapshot = replace(snapshot, job=job)
    return judge_blindness(snapshot).with_table(snapshot.table, now_ms)


class CurrentSnapshot:
    """Returns the newest figures to all threads of a server.

    What depends on wall time is judged once a second and snapshot, because that takes
    a while with thousands of channels.

    Args:
        job: Has the figures.
        clock: Returns wall time.
        monotonic_s: Monotonic clock, seconds.
        played: See `current_snapshot`.
    """

    def __init__(
        self,
        job: JobView,
        clock: Clock = wall_ms,
        monotonic_s: Callable[[], float] = time.monotonic,
        *,
        played: bool = False,
    ) -> None:
        self._played = played
        self._job = job
        self._clock = clock
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._judged: tuple[Snapshot, tuple[int, int], Snapshot] | None = None

    def __call__(self) -> Snapshot:
        """Return the figures; not primed before incidents can be queried."""
        snapshot = self._newest()
        # Counters without their incidents would look as if there were no incidents.
        return snapshot if self._job.has_begun else replace(snapshot, primed=False)

    def _newest(self) -> Snapshot:
        with self._lock:
            board = self._job.board
            # Each clock has seconds of its own.
            second = self._clock() // 1000, int(self._monotonic_s())
            match self._judged:
                case (unjudged, at, judged) if (
                    unjudged is board.snapshot and at == second
                ):
                    return judged
            unjudged = board.snapshot
            judged = current_snapshot(
                board, self._clock, self._monotonic_s, played=self._played
            )
            self._judged = unjudged, second, judged
            return judged


@contextmanager
def status_server(
    job: JobView,
    host: str,
    port: int,
    prometheus: str | None = None,
    *,
    played: bool = False,
) -> Iterator[str]:
    """Serve page, API and metrics while the block runs; gives their URL.

    Args:
        job: The job to serve.
        host: Address to listen on.
        port: Port to listen on; 0 for any free one.
        prometheus: URL of the Prometheus that evaluates the alerts, so that the page
            lists those that fire; None if there is none.
        played: See `current_snapshot`.

    Raises:
        connectors.web.server.AddressUnusable: This machine does not have the address.
        connectors.web.server.PortInUse: Another program listens on the port.
    """
    current = CurrentSnapshot(job, played=played)
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(current))
    with FiringPoll(prometheus) as firing:
        sources = Sources(
            current,
            job.find_incidents,
            job.find_minutes,
            files("dashboards") / "runbooks",
            job.find_recent,
            job.find_steps,
            firing,
            lambda: job.others,
            job.find_verdicts,
            job.verdicts_until_ms,
        )
        yield from _served(create_app(sources, registry), host, port)


def _served(app: Starlette, host: str, port: int) -> Iterator[str]:
    with WebServer(app, host, port) as server:
        click.echo(f"status page {server.url}/   metrics {server.url}/metrics")
        yield server.url
