"""Pages, API and metrics of views that are joined into groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from connectors.prometheus.collector import SnapshotCollector
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from streaming.lookup import Stored
from streaming.verdicts import VerdictRecorder
from tests.support.toy.pipeline import Pipeline
from tests.support.toy.season import BEGIN_MS, clock_of, season


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The application of a job that has read a season."""
    pipeline = Pipeline(tmp_path_factory.mktemp("league"))
    pipeline.batch(season(), clock_of(season()))
    pipeline.batch([], BEGIN_MS + 600_000)
    pipeline.batch([], BEGIN_MS + 600_001)
    snapshot = replace(pipeline.board.snapshot, clock_ms=BEGIN_MS + 600_001)
    pipeline.board.set_job(running=True)
    recorder = VerdictRecorder({"league": pipeline.store.verdicts}, pipeline.board)
    recorder.look(
        replace(snapshot, job=pipeline.board.snapshot.job), BEGIN_MS + 600_001
    )
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: snapshot))
    league = Stored(pipeline.store)
    sources = Sources(lambda: snapshot, lambda: {"league": league}, Path())
    app = create_app(sources, registry)
    with (
        WebServer(app, "127.0.0.1", 0) as server,
        httpx.Client(base_url=server.url) as found,
    ):
        yield found


def test_first_page_has_the_verdicts_of_all_groups(client: httpx.Client) -> None:
    """With a link to their page."""
    page = client.get("/").raise_for_status().text
    assert '<dt>Leagues</dt><dd><a href="views/league">2: 2 degraded</a></dd>' in page


def test_groups_have_the_figures_of_the_last_hour(client: httpx.Client) -> None:
    """And a trend, as channels have."""
    page = client.get("/views/league").raise_for_status().text
    assert 'href="../views/league/one?id=north"' in page
    assert "Matches in steps of 5 min" in page


def test_page_of_a_group_has_charts_incidents_and_figures(client: httpx.Client) -> None:
    """Each incident is explained by its protocol."""
    page = client.get("/views/league/one?id=north").raise_for_status().text
    assert "brought no points" in page
    assert "Matches as a table" in page
    assert (
        '<a href="../../views/league/one?id=north&amp;hours=6#charts">6 h</a>' in page
    )


@pytest.mark.parametrize(
    "address",
    [
        "/views/league/one",
        "/views/league/one?id=west",
        "/views/nothing/one?id=north",
        "/api/v1/views/nothing",
        "/api/v1/views/league?id=west",
        "/api/v1/views/league/minutes?id=west",
        "/api/v1/views/league/verdicts?id=west",
    ],
)
def test_what_does_not_exist_is_not_found(client: httpx.Client, address: str) -> None:
    """Neither a kind nor a group of a kind."""
    assert client.get(address).status_code == 404


def test_api_has_the_report_of_each_group(client: httpx.Client) -> None:
    """Page by page."""
    first = client.get("/api/v1/views/league?limit=1").json()
    assert (first["count"], [one["id"] for one in first["leagues"]]) == (2, ["north"])
    assert first["leagues"][0]["matches"] == 26
    address = f"/api/v1/views/league?limit=1&after={first['next']}"
    second = client.get(address).json()
    assert [one["id"] for one in second["leagues"]] == ["south"]
    assert second["next"] is None


def test_api_has_all_incidents_page_by_page(client: httpx.Client) -> None:
    """Each once, and those of one group alone if it is named."""
    found, after = [], ""
    while True:
        address = f"/api/v1/views/league/incidents?limit=3{after}"
        answer = client.get(address).raise_for_status().json()
        found += [(one["channel"], one["message_id"]) for one in answer["incidents"]]
        if answer["next"] is None:
            break
        after = f"&after={answer['next']}"
    assert len(found) == len(set(found)) > 3
    north = client.get("/api/v1/views/league/incidents?id=north").json()["incidents"]
    assert {one["channel"] for one in north} == {"north"}
    assert all(one["why"].endswith("brought no points") for one in north)


def test_api_has_the_growth_of_a_group(client: httpx.Client) -> None:
    """All of it, as the totals say."""
    answer = client.get("/api/v1/views/league/minutes?id=north&hours=1").json()
    grown = [one["figures"]["matches"] for one in answer["intervals"]]
    assert sum(grown) == 26
    assert sum(map(bool, grown)) == 5


def test_verdicts_of_groups_are_shown_over_time(client: httpx.Client) -> None:
    """On both pages and in the API, as those of channels."""
    answer = client.get("/api/v1/views/league/verdicts?id=north").json()
    (span,) = answer["verdicts"]
    assert (span["verdict"], span["reason"]) == ("degraded", "unacknowledged")
    title = "Degraded, messages were not acknowledged</title>"
    assert title in client.get("/views/league").text
    page = client.get("/views/league/one?id=north").text
    assert title in page
    assert "OK or quiet 0.0 % since" in page


def test_metrics_are_those_of_groups(client: httpx.Client) -> None:
    """Under the label of the protocol."""
    lines = client.get("/metrics").text.splitlines()
    assert 'league_matches_total{league="north"} 26.0' in lines
    assert not [line for line in lines if 'league="0"' in line]
