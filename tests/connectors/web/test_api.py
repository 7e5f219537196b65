"""The JSON API, over a real socket: paths are decoded on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from connectors.history.schema import NumberedMinute, minute_row
from connectors.web import words
from connectors.web.paging import PAGE_LIMIT
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.clock import ClockFigures
from sds_core.observer.excused import Excuse, ExcusedFindings
from sds_core.observer.histogram import Histogram
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    IncidentQuery,
    incident_object,
)
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from sds_core.times import with_utc
from tests.support.snapshots import snapshot_of, with_channels

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]


def no_news(channel: str) -> dict[str, Any]:
    """What the object of a channel has beside its figures, if there is nothing."""
    nothing: dict[str, Any] = {"name": None, "muted": False}
    return nothing | {"id": channel, "held_back": [], "causes": []}


def test_fleet_object_has_every_channel_and_the_job(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """The list has verdict, reason and figures, and the state of the job."""
    fine, failing = totals(messages=3), totals(Verdict.FAILING, gaps_lost=1)
    stage.snapshot = snapshot({"fine": fine, "lossy": failing}, records=9)
    answer = client.get("/api/v1/channels")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json() == with_utc(
        {
            "ok": False,
            "level": "trouble",
            "summary": "1 of 2 channels failing: lossy",
            "clock": 1_786_276_990_123,
            "job": {
                "primed": True,
                "running": True,
                "error": "",
                "retrying": False,
                "kafka_answered": None,
                "topic_missing_since": None,
                "version": "1.2.3",
                "rules": "compiled",
                "records": 9,
                "records_behind": 0,
                "event_time_lag_seconds": 1.25,
                "batch_duration_ms": {
                    "count": 0,
                    "sum": 0,
                    "p50": None,
                    "p95": None,
                    "p99": None,
                },
                "state_bytes": 0,
                "restarts": 0,
            },
            "undecodable": {},
            "held_back": [],
            "channel_count": 2,
            "channels": [
                no_news("lossy") | CHANNEL_FIGURES.report(failing),
                no_news("fine") | CHANNEL_FIGURES.report(fine),
            ],
            "next": None,
        }
    )


def test_fleet_object_has_its_form_before_there_are_figures(
    client: httpx.Client, stage: Any
) -> None:
    """A monitor that is starting answers in the same form."""
    stage.snapshot = snapshot_of()
    fleet = client.get("/api/v1/channels").json()
    assert (fleet["level"], fleet["clock"], fleet["channels"]) == ("starting", None, [])


def test_limit_keeps_the_most_troubled(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """A short list has the worst channels, and how many there are in all."""
    channels = {"a": totals(), "b": totals(Verdict.BLIND), "c": totals()}
    stage.snapshot = snapshot(channels)
    fleet = client.get("/api/v1/channels", params={"limit": 1}).json()
    assert [channel["id"] for channel in fleet["channels"]] == ["b"]
    assert fleet["channel_count"] == 3


@pytest.mark.parametrize("limit", ["-1", "many", "", "1.5", "²", "9" * 5_000])
def test_invalid_limit_is_refused_in_one_line(client: httpx.Client, limit: str) -> None:
    """The answer says what would be valid."""
    answer = client.get("/api/v1/channels", params={"limit": limit})
    assert answer.status_code == 400
    given = words.short(limit)
    assert answer.json() == {
        "error": f"limit must be a whole number, 0 or more, not {given}"
    }


def test_channel_has_its_name_of_the_table(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """In the list, by itself and with its incidents; also whether it is muted."""
    table = ChannelTable([ChannelEntry("a", name="Town hall", mute_until_ms=1)])
    stage.snapshot = snapshot({"a": totals()}).with_table(table, 0)
    stage.incidents = incidents(1)
    (listed,) = client.get("/api/v1/channels").json()["channels"]
    (only,) = client.get("/api/v1/channels?id=a&limit=1").json()["channels"]
    for found in (listed, only, client.get("/api/v1/channels/a").json()):
        assert (found["name"], found["muted"]) == ("Town hall", True)
    (incident,) = client.get("/api/v1/incidents").json()["incidents"]
    assert incident["channel_name"] == "Town hall"


@pytest.mark.parametrize(
    "channel",
    [
        "plain",
        "/waku/2/rs/1/chat",
        "a%2Fb",
        "a/../b",
        "two\nlines",
        "line end\n",
        "?x=1#y&z",
        "日本\u202e",
        " ",
        "",
    ],
)
def test_channel_is_found_by_any_id(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    channel: str,
) -> None:
    """A percent-encoded id finds exactly its own channel."""
    wanted = totals(messages=7)
    decoys = {decoy: totals() for decoy in ("a", "a/b", "b", "two", "line end", "?x=1")}
    stage.snapshot = snapshot(decoys | {channel: wanted})
    answer = client.get(f"/api/v1/channels/{quote(channel, safe='')}")
    assert answer.status_code == 200
    said = no_news(channel)
    assert answer.json() == said | CHANNEL_FIGURES.report(wanted)


@pytest.mark.parametrize("channel", ["nobody", "two\nlines", "<b>", ""])
def test_unknown_channel_is_a_404_in_one_line(
    client: httpx.Client, channel: str
) -> None:
    """The answer is JSON that a program can read."""
    answer = client.get(f"/api/v1/channels/{quote(channel, safe='')}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"error": "no channel has this id", "id": channel}
    assert len(answer.text.splitlines()) == 1


def incidents(count: int) -> list[ChannelIncident]:
    """So many lost messages of one channel."""
    return [
        ChannelIncident("a", Incident(IncidentKind.LOST, f"m{n}", "bob", 1, 2), False)
        for n in range(count)
    ]


def test_parameters_select_incidents(client: httpx.Client, stage: Any) -> None:
    """Every parameter reaches the store; the answer has the report's fields."""
    stage.incidents = [one._replace(channel="a/b ?&\n") for one in incidents(2)]
    answer = client.get(
        "/api/v1/incidents",
        params={
            "channel": "a/b ?&\n",
            "kind": "lost",
            "since": "1786276990123",
            "standing": "true",
            "limit": "2",
        },
    )
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert stage.asked == [
        IncidentQuery("a/b ?&\n", IncidentKind.LOST, 1_786_276_990_123, True, 3)
    ]
    assert answer.json() == with_utc(
        {
            "incidents": [
                incident_object(one) | {"channel_name": None} for one in stage.incidents
            ],
            "causes": {},
            "observer": {},
            "clock": stage.snapshot.clock_ms,
            "more": False,
            "next": None,
        }
    )


@pytest.mark.parametrize("standing", [{}, {"standing": "false"}])
def test_incidents_are_limited_by_default(
    client: httpx.Client, stage: Any, standing: dict[str, str]
) -> None:
    """The answer says that there are more."""
    stage.incidents = incidents(PAGE_LIMIT + 2)
    answer = client.get("/api/v1/incidents", params=standing).json()
    assert stage.asked == [IncidentQuery(limit=PAGE_LIMIT + 1)]
    assert len(answer["incidents"]) == PAGE_LIMIT
    assert answer["more"] is True
    none = client.get("/api/v1/incidents", params={"limit": 0}).json()
    assert (none["incidents"], none["more"], none["next"]) == ([], True, None)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("limit", "-1", "limit must be a whole number, 0 or more"),
        ("limit", "9" * 19, "limit must be a whole number, 0 or more"),
        ("since", "yesterday", "since must be a whole number, 0 or more"),
        ("since", "", "since must be a whole number, 0 or more"),
        ("kind", "gone", "kind must be one of lost, undelivered, unacknowledged"),
        ("standing", "yes", "standing must be one of true, false"),
    ],
)
def test_invalid_query_for_incidents_is_refused_in_one_line(
    client: httpx.Client, stage: Any, name: str, value: str, said: str
) -> None:
    """Nothing is searched."""
    answer = client.get("/api/v1/incidents", params={name: value})
    assert answer.status_code == 400
    assert answer.json() == {"error": f"{said}, not {words.short(value)}"}
    assert stage.asked == []


@pytest.mark.parametrize(
    "path", ["/api/v1/incidents", "/api/v1/minutes?channel=a&hours=1"]
)
def test_unreadable_history_is_an_error(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    path: str,
) -> None:
    """An empty answer would be wrong."""
    stage.snapshot = snapshot({"a": totals()})
    stage.has_history = False
    answer = client.get(path)
    assert answer.status_code == 500
    assert answer.json()["error"].startswith("no history was found in nowhere")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/incidents",
        "/api/v1/minutes?channel=a",
        "/api/v1/taps",
        "/api/v1/channels/a",
    ],
)
def test_api_is_not_ready_before_figures_are_read(
    client: httpx.Client, stage: Any, path: str
) -> None:
    """A starting monitor must not answer that there are no incidents."""
    stage.snapshot = snapshot_of()
    answer = client.get(path)
    assert answer.status_code == 503
    assert "has not read its figures yet" in answer.json()["error"]
    assert stage.asked == []


def test_minutes_are_refused_before_any_record(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Without a clock they would be minutes before 1970."""
    stage.snapshot = replace(snapshot({"a": totals()}), clock_ms=0)
    answer = client.get("/api/v1/minutes?channel=a")
    assert answer.status_code == 503
    assert answer.json() == {"error": "no record has been read yet"}


def test_tap_object_has_all_figures_of_the_tap(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """When it was seen, what it missed, and its number of channels."""
    channels = {"a": totals(observers=["t1", "t2"]), "b": totals(observers=["t1"])}
    taps = {"t2": TapTotals(8, 3, 7, [(1, 2), (5, 7)]), "t1": TapTotals(9)}
    stage.snapshot = replace(snapshot(channels), taps=taps)
    answer = client.get("/api/v1/taps").json()
    assert answer["clock"] == stage.snapshot.clock_ms
    assert answer["taps"] == with_utc(
        [
            {
                "id": "t1",
                "last_seen": 9,
                "missing_records": 0,
                "last_hole": None,
                "clock_offset_ms": None,
                "holes": [],
                "channel_count": 2,
            },
            {
                "id": "t2",
                "last_seen": 8,
                "missing_records": 3,
                "last_hole": 7,
                "clock_offset_ms": None,
                "holes": [[1, 2], [5, 7]],
                "channel_count": 1,
            },
        ]
    )


def test_clocks_of_taps_are_told(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot
) -> None:
    """Of each tap, and the wrong ones of taps whose records are all refused."""
    clock = ClockFigures(0, 0, {"t1": -100, "fast": 90_000})
    stage.snapshot = replace(snapshot(clock=clock), taps={"t1": TapTotals(9)})
    answer = client.get("/api/v1/taps").json()
    assert [one["clock_offset_ms"] for one in answer["taps"]] == [-100]
    assert answer["wrong_clocks"] == {"fast": 90_000}


def test_alerts_that_are_held_back_are_told(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """In the list of channels, and with their channel."""
    lost = ExcusedFindings(
        "lost", Excuse("tap_hole", 5, 9), 7, 0, True, "SdsMessagesLost"
    )
    other = lost._replace(kind="undelivered", holds_back=False)
    stage.snapshot = with_channels(
        snapshot({"a": totals(), "b": totals()}), excused={"a": (lost, other)}
    )
    told = {
        "alert": "SdsMessagesLost",
        "channel": "a",
        "reason": "tap_hole",
        "findings": 7,
        "from": 5,
        "to": 9,
    }
    answer = client.get("/api/v1/channels").json()
    assert answer["held_back"] == with_utc([told])
    held = {one["id"]: one["held_back"] for one in answer["channels"]}
    assert held == {"a": with_utc([told]), "b": []}


def test_minutes_have_the_figures_of_each_interval(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    histogram: Callable[..., Histogram],
) -> None:
    """They are the charts' figures, at the interval that fits the hours."""
    minute_ms = 60_000
    now_ms = snapshot().clock_ms // minute_ms * minute_ms
    stage.snapshot = snapshot({"a b": totals(first_event_ms=now_ms - 2 * minute_ms)})
    stage.minutes = [
        minute_row(NumberedMinute(n, "a b", now_ms - ago * minute_ms, figures))
        for n, (ago, figures) in enumerate(
            [
                (2, totals(messages=3, definite_latency=histogram(900))),
                (1, totals(messages=5, definite_latency=histogram(900, 4_000))),
            ]
        )
    ]
    answer = client.get(
        "/api/v1/minutes", params={"channel": "a b", "hours": "1"}
    ).json()
    assert (answer["channel"], answer["hours"]) == ("a b", 1)
    assert (answer["interval_ms"], len(answer["intervals"])) == (minute_ms, 3)
    last = answer["intervals"][-3:]
    assert [one["begin"] for one in last] == [
        now_ms - ago * minute_ms for ago in (2, 1, 0)
    ]
    assert [one["figures"]["messages"] for one in last] == [3, 2, 0]
    assert [one["figures"]["ack_latency_ms"]["p95"] for one in last] == [
        1_000,
        5_000,
        None,
    ]


@pytest.mark.parametrize(
    ("parameters", "status", "said"),
    [
        (
            {"channel": "a", "hours": "2"},
            400,
            "hours must be one of 1, 3, 6, 24, not 2",
        ),
        ({"key": "0" * 16}, 404, "no channel has this key"),
        ({"channel": "nobody"}, 404, "no channel has this id"),
        ({}, 404, "no channel has this id"),
    ],
)
def test_invalid_query_for_minutes_is_refused_in_one_line(
    client: httpx.Client, parameters: dict[str, str], status: int, said: str
) -> None:
    """The answer says what would be valid."""
    answer = client.get("/api/v1/minutes", params=parameters)
    assert (answer.status_code, answer.json()["error"]) == (status, said)
