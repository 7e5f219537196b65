"""``sds-monitor plan forecast`` reads a running monitor."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from connectors.history.schema import Row
from connectors.web import paging
from connectors.web.app import create_app
from connectors.web.sources import Sources
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.planning.hours import DAY_MS, HOUR_MS, MINUTE_MS
from streaming.cli import group
from streaming.cli.actions import plan_forecast
from tests.support.planning.month import Month
from tests.support.snapshots import snapshot_of
from tests.support.web.stored import stored

MONTH = Month(days=20, messages_a_day=2_800.0)
END_MS = MONTH.begin_ms + 20 * DAY_MS
ROWS = MONTH.rows(step=10)
SNAPSHOT = snapshot_of(
    primed=True,
    channels={"town": ChannelTotals(), "village": ChannelTotals()},
    clock_ms=END_MS,
)

Serve = Callable[[ASGIApp], str]


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the end of the history."""
    monkeypatch.setattr(plan_forecast, "wall_ms", lambda: END_MS)


def find(
    channel: str, since_ms: int, until_ms: int, fields: Collection[str]
) -> list[Row]:
    """Minutes of `town`; of `village` the first three days."""
    rows = ROWS if channel == "town" else ROWS[: 3 * 144]
    assert set(fields) < {*ROWS[0], "frames_sync", "frames_ephemeral"} | {*fields}
    return [row for row in rows if since_ms <= row["minute"] < until_ms]


def monitor() -> Starlette:
    """A monitor's application that follows two channels."""
    sources = Sources(lambda: SNAPSHOT, stored(find_minutes=find), Path())
    return create_app(sources, CollectorRegistry())


def invoke(url: str, *arguments: str) -> Result:
    """The command in this process."""
    line = ["plan", "forecast", "--api", url, "--format", "json", *arguments]
    return CliRunner().invoke(group, line)


def test_monitor_has_the_figures_of_the_history(serve: Serve) -> None:
    """From its minutes, hour by hour."""
    result = invoke(serve(monitor()), "--days", "7")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["begin"] == END_MS
    town = document["channels"]["town"]
    assert town["history_days"] == 19
    week = MONTH.bytes_by_day[-7:].mean()
    assert town["figures"]["bytes"]["past"] == pytest.approx(week, rel=1e-5)
    assert document["without_forecast"] == [
        {"channel": "village", "why": "silent since 2026-08-13 00:00:00 UTC"}
    ]


def test_hours_come_in_pages_and_all_are_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 days have more hours than a page may have here."""
    whole = json.loads(invoke(serve(monitor()), "--days", "7").stdout)
    monkeypatch.setattr(paging, "PAGE_LIMIT", 100)
    url = serve(monitor())
    first = httpx.get(f"{url}/api/v1/views/sds/hours", params={"id": "town"}).json()
    assert len(first["hours"]) == 100
    given = {"id": "town", "limit": 2, "after": first["next"]}
    next_ones = httpx.get(f"{url}/api/v1/views/sds/hours", params=given).json()
    minutes = [one["minute"] for one in [*first["hours"], *next_ones["hours"]]]
    assert minutes == sorted(set(minutes))
    assert json.loads(invoke(url, "--days", "7").stdout) == whole


def test_hour_that_ends_while_views_are_read_does_not_count(serve: Serve) -> None:
    """The views that were read first lack the rest of it."""
    clocks = [END_MS - 35 * MINUTE_MS]

    def find_slowly(channel: str, *given: Any) -> list[Row]:
        clocks.append(END_MS)
        return find(channel, *given)

    def snapshot() -> Snapshot:
        return replace(SNAPSHOT, clock_ms=clocks[-1])

    sources = Sources(snapshot, stored(find_minutes=find_slowly), Path())
    url = serve(create_app(sources, CollectorRegistry()))
    document = json.loads(invoke(url, "--days", "7").stdout)
    assert len(clocks) > 2
    assert document["begin"] == END_MS - HOUR_MS


def test_fewest_days_are_enough(serve: Serve) -> None:
    """They are whole but for the first hour."""
    result = invoke(serve(monitor()), "--days", "7", "--fit-days", "15")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["total"]["history_days"] == 14


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("--channel", "village"), 2, "no forecast for village: silent since 2026-08"),
        (("--channel", "twon"), 2, "no such channel: 'twon'"),
        (("--views", "mvds"), 3, "answers 404"),
    ],
)
def test_refusal_of_a_monitor_is_one_line(
    serve: Serve, arguments: tuple[str, ...], code: int, error: str
) -> None:
    """Wrong use is 2; what cannot be reached is 3."""
    result = invoke(serve(monitor()), *arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert error in result.stderr.splitlines()[-1]


def test_no_monitor_is_one_line() -> None:
    """Nobody listens on port 1, and a word is no address."""
    result = invoke("http://127.0.0.1:1")
    assert result.exit_code == 3
    assert "check --api, and check that the monitor runs" in result.stderr
    assert invoke("nonsense").exit_code == 2


@pytest.mark.parametrize("text", ["[]", "{}", "x", '{"channels": [{"id": 5}]}'])
def test_foreign_server_is_one_line(serve: Serve, text: str) -> None:
    """It answers, but not with hours."""
    route = Route("/api/v1/views/sds", lambda _: PlainTextResponse(text))
    result = invoke(serve(Starlette(routes=[route])))
    assert result.exit_code == 3
    assert "is it sds-monitor's" in result.stderr


@pytest.mark.parametrize("days", ["0", "366", "-1", "x"])
def test_route_refuses_days_out_of_range(serve: Serve, days: str) -> None:
    """With status 400, in one line."""
    url = f"{serve(monitor())}/api/v1/views/sds/hours"
    answer = httpx.get(url, params={"id": "town", "days": days})
    assert answer.status_code == 400
    assert "days" in answer.json()["error"]
