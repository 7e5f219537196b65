"""Lists of the API in pages."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from connectors.web.paging import PAGE_LIMIT, next_page
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    IncidentPlace,
)
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.shown_verdicts import DAY_MS, ShownVerdict
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import with_channels

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

HOUR_MS = 3_600_000
LONG = "x" * 5_000
ODD = [f"{LONG}{n}" for n in range(3)] + ["", "a b?&=#", "日本\u202e", "two\nlines"]
"""Ids that are too long for an address, or have to be escaped there."""


def pages(
    client: httpx.Client, kind: str, **parameters: Any
) -> list[list[dict[str, Any]]]:
    """Every page of a list."""
    found = []
    while True:
        answer = client.get(f"/api/v1/{kind}", params=parameters)
        assert answer.status_code == 200, answer.text
        assert len(str(answer.url)) < 4_000
        found.append(answer.json()[kind])
        after = answer.json()["next"]
        if after is None:
            return found
        parameters["after"] = after


def ids(found: list[list[dict[str, Any]]]) -> list[str]:
    """The ids of all entries."""
    return [entry["id"] for page in found for entry in page]


@pytest.fixture
def many(
    stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> dict[str, ChannelTotals]:
    """Channels of all verdicts on the stage, some of them muted."""
    verdicts = list(Verdict)
    channels = {
        name: totals(verdicts[n % len(verdicts)])
        for n, name in enumerate([*ODD, *(f"c{n}" for n in range(40))])
    }
    muted = [ChannelEntry(f"c{n}", mute_until_ms=1) for n in range(5)]
    stage.snapshot = snapshot(channels).with_table(ChannelTable(muted), 0)
    return channels


def test_list_of_channels_is_limited_by_default(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Also if more are asked for; the number of all channels is beside it."""
    one = totals()
    stage.snapshot = snapshot({f"c{n}": one for n in range(2 * PAGE_LIMIT + 1)})
    for parameters in ({}, {"limit": 10 * PAGE_LIMIT}):
        answer = client.get("/api/v1/channels", params=parameters).json()
        assert len(answer["channels"]) == PAGE_LIMIT
        assert answer["channel_count"] == 2 * PAGE_LIMIT + 1
        assert answer["next"]
    found = pages(client, "channels")
    assert [len(page) for page in found] == [PAGE_LIMIT, PAGE_LIMIT, 1]
    assert sorted(ids(found)) == sorted(stage.snapshot.views["sds"].totals)


@pytest.mark.parametrize("limit", [1, 7, 46, 47, 48])
def test_pages_have_every_channel_once_in_order(
    client: httpx.Client, many: dict[str, ChannelTotals], limit: int
) -> None:
    """The order is that of a single page."""
    (whole,) = pages(client, "channels")
    assert sorted(entry["id"] for entry in whole) == sorted(many)
    found = pages(client, "channels", limit=limit)
    assert [entry for page in found for entry in page] == whole
    assert {len(page) for page in found[:-1]} <= {limit}


def test_channel_that_changes_its_place_hides_no_other(
    client: httpx.Client, stage: Any, many: dict[str, ChannelTotals]
) -> None:
    """The others come once each, whatever happens between two requests."""
    seen: list[str] = []
    parameters: dict[str, Any] = {"limit": 3}
    changing = [name for name in many if name.startswith("c")][5:25:2]
    for turn in range(len(many)):
        answer = client.get("/api/v1/channels", params=parameters).json()
        seen += [entry["id"] for entry in answer["channels"]]
        if answer["next"] is None:
            break
        parameters["after"] = answer["next"]
        # Some go to the front, others to the end.
        verdict = (Verdict.FAILING, Verdict.OK)[turn % 2]
        channels = dict(stage.snapshot.views["sds"].totals)
        for name in changing[turn % 3 :: 3]:
            channels[name] = ChannelTotals(verdict=verdict)
        channels[f"new{turn}"] = ChannelTotals(verdict=verdict)
        stage.snapshot = with_channels(stage.snapshot, totals=channels)
    steady = set(many) - set(changing)
    assert sorted(name for name in seen if name in steady) == sorted(steady)


def test_page_of_nothing_has_no_next(
    client: httpx.Client, many: dict[str, ChannelTotals]
) -> None:
    """Whoever follows it would never come to an end."""
    answer = client.get("/api/v1/channels", params={"limit": 0}).json()
    assert (answer["channels"], answer["next"]) == ([], None)


def test_single_channel_has_no_next_page(
    client: httpx.Client, many: dict[str, ChannelTotals]
) -> None:
    """It is all that was asked for."""
    answer = client.get("/api/v1/channels", params={"id": "c7", "limit": 1}).json()
    assert ([one["id"] for one in answer["channels"]], answer["next"]) == (["c7"], None)


@pytest.mark.parametrize("limit", [1, 4, 100])
def test_pages_have_every_tap_once_in_order(
    client: httpx.Client, stage: Any, limit: int
) -> None:
    """By id, as in a single page."""
    taps = {name: TapTotals(n) for n, name in enumerate([*ODD, "t2", "t1"])}
    stage.snapshot = replace(stage.snapshot, taps=taps)
    assert ids(pages(client, "taps", limit=limit)) == sorted(taps)


def test_list_of_taps_is_limited_by_default(client: httpx.Client, stage: Any) -> None:
    """Anyone who may write to the topic can invent observers."""
    taps = {f"t{n:05}": TapTotals(n) for n in range(PAGE_LIMIT + 1)}
    stage.snapshot = replace(stage.snapshot, taps=taps)
    assert [len(page) for page in pages(client, "taps")] == [PAGE_LIMIT, 1]


def lost(channel: str, message_id: str, found_ms: int) -> ChannelIncident:
    """A lost message."""
    incident = Incident(IncidentKind.LOST, message_id, "bob", 1, found_ms)
    return ChannelIncident(channel, incident, tap_hole=False)


@pytest.mark.parametrize("channel", ["room", "a b?&=#", f"{LONG}1"])
def test_next_page_of_incidents_begins_after_the_last_one(
    client: httpx.Client, stage: Any, many: dict[str, ChannelTotals], channel: str
) -> None:
    """The store is asked for what comes after its place, with the same filters."""
    stage.incidents = [lost(channel, f"m{n}", 9 - n) for n in range(4)]
    answer = client.get("/api/v1/incidents", params={"limit": 2}).json()
    assert answer["more"] is True
    given = {"limit": 2, "kind": "lost", "after": answer["next"]}
    assert client.get("/api/v1/incidents", params=given).status_code == 200
    query = stage.asked[-1]
    assert query.after == IncidentPlace(8, channel, IncidentKind.LOST, "m1")
    assert (query.kind, query.limit) == (IncidentKind.LOST, 3)


def test_long_message_id_makes_no_long_address(
    client: httpx.Client, stage: Any, many: dict[str, ChannelTotals]
) -> None:
    """The next page begins after all ids with the same beginning."""
    stage.incidents = [lost("c1", LONG, 9), lost("c1", "m", 8)]
    after = client.get("/api/v1/incidents", params={"limit": 1}).json()["next"]
    assert len(after) < 1_000
    client.get("/api/v1/incidents", params={"after": after})
    place = stage.asked[-1].after
    assert LONG < place.message_id < "y"


def test_verdicts_of_a_moving_period_come_once(
    client: httpx.Client, stage: Any, many: dict[str, ChannelTotals]
) -> None:
    """A minute passes between two pages, and the first period then begins later."""
    until_ms = 30_000 * DAY_MS - 1
    stage.shown = {
        "c1": [
            ShownVerdict(until_ms + 1 - n * HOUR_MS, verdict, verdict)
            for n, verdict in ((30, "ok"), (24, "ok"), (9, "failing"), (4, "quiet"))
        ]
    }
    found = []
    parameters: dict[str, Any] = {"channel": "c1", "limit": 1}
    for minute in range(4):
        stage.shown_until_ms = until_ms + minute * 60_000
        answer = client.get("/api/v1/verdicts", params=parameters).json()
        found += [one["verdict"] for one in answer["verdicts"]]
        parameters["after"] = answer["next"]
        if answer["next"] is None:
            break
    assert found == ["ok", "failing", "quiet"]


@pytest.mark.parametrize("kind", ["channels", "incidents", "taps"])
@pytest.mark.parametrize(
    "after",
    [
        "",
        "x",
        "?",
        "AAAA",
        next_page([]),
        next_page(["a", 1, "b", None]),
        next_page([{"a": 1}]),
        next_page([False, 0, ["0" * 16, True]]),
        next_page([1, ["0" * 16, True], "lost", "m"]),
        next_page(["0" * 16, True]),
        next_page([10**30]),
        next_page([10**30, ["c", False], "lost", "m"]),
        base64.urlsafe_b64encode(json.dumps("[" * 3_000).encode()).decode(),
    ],
)
def test_invalid_next_is_refused_in_one_line(
    client: httpx.Client,
    stage: Any,
    many: dict[str, ChannelTotals],
    kind: str,
    after: str,
) -> None:
    """Whatever it is; nothing is searched."""
    answer = client.get(f"/api/v1/{kind}", params={"after": after})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(
        "after must be the value of the field 'next' in an answer of this monitor"
    )
    assert stage.asked == []


@pytest.mark.parametrize("kind", ["hours", "verdicts"])
@pytest.mark.usefixtures("many")
def test_time_beyond_the_databases_integers_is_refused(
    client: httpx.Client, kind: str
) -> None:
    """DuckDB would refuse it with an internal error."""
    given = {"id": "c1", "after": next_page([10**40])}
    answer = client.get(f"/api/v1/views/sds/{kind}", params=given)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("after must be")
