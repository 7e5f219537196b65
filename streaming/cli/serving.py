"""Page, API and metrics of a job, from before it starts until after it has ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from typing import Protocol

import click
from prometheus_client import CollectorRegistry

from connectors.history.schema import Row
from connectors.prometheus.collector import SnapshotCollector
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.snapshot import Snapshot
from streaming.board import Board
from streaming.cli.output import wall_ms
from streaming.job import Job

Clock = Callable[[], int]
"""Gives wall time, Unix ms."""


class Shown(Protocol):
    """What can be served; a `Job` is one."""

    @property
    def board(self) -> Board:
        """The newest figures."""

    @property
    def has_begun(self) -> bool:
        """Whether incidents and minutes can be found."""

    def find_incidents(self, query: IncidentQuery) -> Sequence[ChannelIncident]:
        """As `Sources.find_incidents`."""

    def find_minutes(
        self, channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> Sequence[Row]:
        """As `Sources.find_minutes`."""


class ComingJob:
    """A job that is shown before it runs: until then there is nothing to be found.

    Attributes:
        board: For the job's figures.
        job: The job, once it runs.
    """

    def __init__(self) -> None:
        self.board = Board()
        self.job: Job | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the job runs, or did."""
        return self.job is not None

    def find_incidents(self, query: IncidentQuery) -> Sequence[ChannelIncident]:
        """Those of the job."""
        return [] if self.job is None else self.job.find_incidents(query)

    def find_minutes(
        self, channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> Sequence[Row]:
        """Those of the job."""
        if self.job is None:
            return []
        return self.job.find_minutes(channel, since_ms, until_ms, fields)


def judged(board: Board, clock: Clock) -> Snapshot:
    """The newest figures as people are to see them at a wall time.

    With the verdicts for a topic that has fallen silent as a whole, and the channels
    that are muted; no other figure depends on the clock.
    """
    snapshot, now_ms = board.snapshot, clock()
    return judge_blindness(snapshot, now_ms).with_table(snapshot.table, now_ms)


@contextmanager
def served(shown: Shown, host: str, port: int, clock: Clock = wall_ms) -> Iterator[str]:
    """Serve page, API and metrics while the block runs; gives their URL.

    Args:
        shown: What is served.
        host: Address to listen on.
        port: Port to listen on, 0 for any free one.
        clock: Of the taps; another one than of this machine if their traffic is played
            faster than life.

    Raises:
        connectors.web.server.AddressUnusable: The address is none of this machine's.
        connectors.web.server.PortInUse: Another program listens on the port.
    """

    def current() -> Snapshot:
        snapshot = judged(shown.board, clock)
        # Figures without the incidents behind them would say that there are none.
        return snapshot if shown.has_begun else replace(snapshot, primed=False)

    registry = CollectorRegistry()
    registry.register(SnapshotCollector(current))
    sources = Sources(
        current,
        shown.find_incidents,
        shown.find_minutes,
        files("dashboards") / "runbooks",
    )
    with WebServer(create_app(sources, registry), host, port) as server:
        click.echo(f"status page {server.url}/   metrics {server.url}/metrics")
        yield server.url
