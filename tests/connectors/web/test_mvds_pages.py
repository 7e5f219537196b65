"""Pages of MVDS: the list of groups, and the page of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from prometheus_client import CollectorRegistry

from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import with_channels, with_others
from tests.support.web.reading import Tags

GROUP, OTHER = "00000000000000aa", "00000000000000bb"


def unacknowledged(
    message_id: str, found_ms: int, lacking: dict[str, int], others: int = 0
) -> ChannelIncident:
    """A message of the group that peers did not acknowledge."""
    incident = Incident(
        IncidentKind.UNACKNOWLEDGED,
        message_id,
        "",
        min(lacking.values()),
        found_ms,
        lacking=lacking,
        lacking_others=others,
        named_by=["peer-0"],
    )
    return ChannelIncident(GROUP, incident, tap_hole=False)


@pytest.fixture
def client(
    stage: Any, snapshot: Callable[..., Snapshot], switch: Any, server: WebServer
) -> Iterator[httpx.Client]:
    """Two groups in order, and what belongs to none."""
    now_ms = snapshot().clock_ms
    totals = {
        GROUP: GroupTotals(verdict=Verdict.OK, verdict_reason="ok", first_event_ms=1),
        OTHER: GroupTotals(verdict=Verdict.OK, verdict_reason="ok", first_event_ms=1),
        "unknown": GroupTotals(verdict=Verdict.QUIET, verdict_reason="quiet"),
        "other_groups": GroupTotals(verdict=Verdict.FAILING),
    }
    groups = Views(SHARD_VIEWS, totals, muted=frozenset({OTHER}))
    table = ChannelTable(
        [
            ChannelEntry(GROUP, name="Town hall"),
            ChannelEntry(OTHER, mute_until_ms=now_ms + 1),
        ]
    )
    shown = replace(with_others(snapshot(), {"mvds": groups}), table=table)
    stage.incidents = [
        unacknowledged("m1", now_ms, {"peer-1": now_ms - 400_000}),
        unacknowledged(
            "m2", now_ms, {"peer-1": now_ms - 300_000, "peer-2": now_ms - 200_000}
        ),
    ]
    sources = Sources(lambda: shown, lambda: {"mvds": stage}, stage.runbooks)
    switch.app = create_app(sources, CollectorRegistry())
    with httpx.Client(base_url=server.url) as made:
        yield made


def page_of(client: httpx.Client, path: str) -> tuple[str, list[Any]]:
    """Text and tags of a page."""
    answer = client.get(path)
    assert answer.status_code == 200
    tags = Tags(answer.text)
    return " ".join(tags.text.split()), tags.found


def test_groups_that_are_none_come_last(client: httpx.Client) -> None:
    """A quiet or failing verdict of them is no reason to look there first."""
    _, tags = page_of(client, "/views/mvds?window=all")
    rows = [a["data-key"] for tag, a in tags if tag == "tr" and "data-key" in a]
    assert rows == [GROUP, OTHER, "other_groups", "unknown"]


def test_page_of_a_group_names_the_peers_that_did_not_acknowledge(
    client: httpx.Client,
) -> None:
    """Who, how many messages, since when, and what to do about it."""
    text, tags = page_of(client, f"/views/mvds/one?id={GROUP}")
    assert "Incidents: 2 messages unresolved" in text
    assert (
        "Not acknowledged peer-1 did not acknowledge 2 messages since 11:56:30 "
        "What to do about peer-1"
    ) in text
    assert "peer-2 did not acknowledge 1 message since 11:59:50" in text
    hrefs = [a.get("href") for tag, a in tags if tag == "a"]
    runbook = "../../runbooks/MvdsMessagesUnacknowledged"
    assert f"{runbook}?channel={quote(GROUP, safe='')}" in hrefs


def test_group_says_if_incidents_do_not_name_all_peers(
    client: httpx.Client, stage: Any
) -> None:
    """Incidents name the first hundred."""
    since_ms = stage.snapshot.clock_ms - 1_000
    stage.incidents = [unacknowledged("m", since_ms, {"peer-1": since_ms}, others=7)]
    text, _ = page_of(client, f"/views/mvds/one?id={GROUP}")
    assert "peer-1 did not acknowledge at least 1 message since" in text


def test_links_of_a_group_lead_to_the_list_of_its_incidents(
    client: httpx.Client,
) -> None:
    """Which leads to the same as JSON."""
    _, tags = page_of(client, f"/views/mvds/one?id={GROUP}")
    hrefs = {str(a.get("href")) for tag, a in tags if tag == "a"}
    (address,) = (one for one in hrefs if "standing=true" in one)
    assert f"/views/mvds/incidents?id={GROUP}&standing=true" in address
    text, tags = page_of(client, address.removeprefix("../.."))
    assert "Unresolved: 2 messages" in text
    assert "Group Town hall" in text
    assert "Not delivered to" not in text
    assert "peer-1 did not acknowledge 2 messages" in text
    (json,) = (
        str(a["href"])
        for tag, a in tags
        if tag == "a" and "api/v1" in str(a.get("href"))
    )
    answer = client.get(json.removeprefix("../..")).raise_for_status().json()
    assert {one["channel_name"] for one in answer["incidents"]} == {"Town hall"}


def test_groups_are_named_and_muted_like_channels(client: httpx.Client) -> None:
    """On their pages, in the list, and in the API."""
    text, _ = page_of(client, f"/views/mvds/one?id={GROUP}")
    assert f"Town hall OK nothing amiss in the last 10 min Id {GROUP}" in text
    text, _ = page_of(client, "/views/mvds?window=all&find=hall")
    assert f"Town hall {GROUP} OK" in text
    text, _ = page_of(client, "/views/mvds?window=all")
    assert "Muted until 2026-08-09 12:03:10 UTC" in text
    groups = client.get("/api/v1/views/mvds").json()["groups"]
    assert {one["id"]: (one["name"], one["muted"]) for one in groups} == {
        GROUP: ("Town hall", False),
        OTHER: (None, True),
        "other_groups": (None, False),
        "unknown": (None, False),
    }


def test_kind_at_the_root_has_the_addresses_of_the_others_too(
    client: httpx.Client, stage: Any, switch: Any
) -> None:
    """Programs need not know which kind is at the root."""
    stage.snapshot = with_channels(stage.snapshot, totals={"c": ChannelTotals()})
    switch.app = stage.app
    (listed,) = client.get("/api/v1/channels").json()["channels"]
    answer = client.get("/api/v1/views/sds").json()
    assert (answer["count"], answer["channels"]) == (1, [listed])
    root, below = (page_of(client, path)[0] for path in ("/", "/views/sds"))
    assert root == below
    for path in ("/views/sds/one?id=c", "/views/sds/incidents?id=c"):
        _, tags = page_of(client, path)
        links = [str(a["href"]) for tag, a in tags if tag == "a" and "href" in a]
        for link in links:
            if link.startswith("../../") and "/runbooks/" not in link:
                assert client.get(link.removeprefix("../..")).status_code == 200
