"""A report and a history of incidents, and a server for an application."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from connectors.history.parquet import ParquetHistory
from connectors.history.schema import INCIDENTS, NumberedIncident, incident_row
from connectors.web.server import WebServer
from sds_core.observer.incidents import ChannelIncident
from sds_core.observer.report import build_report
from tests.support.cli.incidents import ALL, MakeReport
from tests.support.snapshots import snapshot_of


@pytest.fixture
def report(tmp_path: Path) -> MakeReport:
    """Make a report with incidents; with None, one without detail."""

    def make(incidents: list[ChannelIncident] | None) -> Path:
        path = tmp_path / "report.json"
        document = build_report(snapshot_of(), 0, {}, incidents)
        path.write_text(json.dumps(document, sort_keys=True))
        return path

    return make


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history of all of them."""
    directory = tmp_path / "history"
    rows = [incident_row(NumberedIncident(1, one)) for one in ALL]
    ParquetHistory(directory).write(INCIDENTS, rows)
    return directory


@pytest.fixture
def serve() -> Iterator[Callable[[ASGIApp], str]]:
    """Serve an application until the test's end; gives its URL."""
    servers: list[WebServer] = []

    def start(app: ASGIApp) -> str:
        server = WebServer(app, port=0)
        server.start()
        servers.append(server)
        return server.url

    yield start
    for server in servers:
        server.stop()
