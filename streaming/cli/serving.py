"""Serves page, API and metrics, also before the job starts and after it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.resources import files
from types import MappingProxyType
from typing import Protocol

import click
from prometheus_client import CollectorRegistry

from connectors.prometheus.collector import PlanCollector, SnapshotCollector
from connectors.prometheus.firing import FiringPoll
from connectors.web.access import OPEN, Access
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources, StoredViews, TraceQuestion
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.freshness import Arrivals
from sds_core.observer.snapshot import Snapshot
from sds_core.planning.plan import Plans
from sds_core.trace.trace import Trace
from streaming.board import Board
from streaming.cli.output import wall_ms
from streaming.job import Job

Clock = Callable[[], int]
"""Returns wall time, Unix ms."""


class JobView(Protocol):
    """What the server reads from a job; `Job` and `PendingJob` implement it."""

    @property
    def board(self) -> Board:
        """The newest figures of the job."""

    @property
    def stored(self) -> Mapping[str, StoredViews] | None:
        """Value of `Sources.stored`; None before the history can be queried."""


class PendingJob:
    """A job that may not have started yet; the server reads from it.

    Before the job starts, `stored` is None.
    """

    def __init__(self) -> None:
        self.board = Board()
        self.job: Job | None = None

    @property
    def stored(self) -> Mapping[str, StoredViews] | None:
        """See `Job`."""
        return None if self.job is None else self.job.stored


def current_snapshot(
    board: Board,
    clock: Clock = wall_ms,
    monotonic_s: Callable[[], float] = time.monotonic,
    *,
    played: bool = False,
) -> Snapshot:
    """Return the newest figures, with verdicts as of the current time.

    `clock` is used to determine which channels are muted. `monotonic_s` is used to
    determine whether Kafka still answers, and whether the whole topic is silent.
    `played` means that the records are from recorded or simulated traffic. In this
    case, a silence of the topic and clock errors of taps are ignored, because they say
    nothing about real taps.
    """
    snapshot, now_ms = board.snapshot.as_of(monotonic_s()), clock()
    if played:
        job = snapshot.job
        clocks = replace(job.clock, taps=MappingProxyType({}))
        job = replace(job, arrivals=Arrivals(), clock=clocks)
        snapshot = replace(snapshot, job=job)
    return judge_blindness(snapshot).with_table(snapshot.table, now_ms)


class CurrentSnapshot:
    """Returns the newest figures to all threads of a server; see `current_snapshot`.

    For thousands of channels, the computation of verdicts takes a while. Verdicts are
    therefore computed again only if the job has new figures, or a new second has begun.
    """

    def __init__(
        self,
        job: JobView,
        clock: Clock = wall_ms,
        monotonic_s: Callable[[], float] = time.monotonic,
        *,
        played: bool = False,
    ) -> None:
        self._job = job
        self._clock, self._monotonic_s = clock, monotonic_s
        self._judge = partial(
            current_snapshot, job.board, clock, monotonic_s, played=played
        )
        self._lock = threading.Lock()
        self._judged: tuple[Snapshot, tuple[int, int], Snapshot] | None = None

    def __call__(self) -> Snapshot:
        """Return the figures.

        Until incidents can be queried, `primed` is False in the figures.
        """
        snapshot = self._newest()
        # A page with counters but without incidents would suggest that no incident has
        # occurred.
        has_begun = self._job.stored is not None
        return snapshot if has_begun else replace(snapshot, primed=False)

    def _newest(self) -> Snapshot:
        with self._lock:
            unjudged = self._job.board.snapshot
            # Wall time and monotonic time begin a second at different moments, so the
            # seconds of both clocks are compared.
            second = self._clock() // 1000, int(self._monotonic_s())
            match self._judged:
                case (before, at, judged) if before is unjudged and at == second:
                    return judged
            self._judged = unjudged, second, self._judge()
            return self._judged[2]


@contextmanager
def status_server(
    job: JobView,
    host: str,
    port: int,
    access: Access = OPEN,
    prometheus: str | None = None,
    plans: Callable[[], Plans] = dict,
    *,
    trace: Callable[[TraceQuestion], Trace] | None = None,
    played: bool = False,
) -> Iterator[str]:
    """Serve page, API and metrics while the block runs; yields the server's URL.

    Port 0 selects a free port. The page lists the alerts of the Prometheus at the URL
    `prometheus`. See `Sources` for `plans` and `trace`, and `current_snapshot` for
    `played`.

    Raises:
        connectors.sockets.listener.AddressUnusable: The server cannot listen on `host`.
        connectors.sockets.listener.PortInUse: Another program listens on the port.
    """
    current = CurrentSnapshot(job, played=played)
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(current))
    registry.register(PlanCollector(current, plans))
    with FiringPoll(prometheus) as firing:
        runbooks = files("dashboards") / "runbooks"
        sources = Sources(current, lambda: job.stored or {}, runbooks, firing, plans)
        if trace is not None:
            sources = replace(sources, trace=trace)
        with WebServer(create_app(sources, registry), host, port, access) as server:
            click.echo(f"status page {server.url}/   metrics {server.url}/metrics")
            yield server.url
