"""Pages of MVDS: the list of groups, and the page of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import with_others
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
    shown = with_others(snapshot(), {"mvds": Views(SHARD_VIEWS, totals)})
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
    assert "../../runbooks/MvdsMessagesUnacknowledged" in hrefs


def test_group_says_if_incidents_do_not_name_all_peers(
    client: httpx.Client, stage: Any
) -> None:
    """Incidents name the first hundred."""
    since_ms = stage.snapshot.clock_ms - 1_000
    stage.incidents = [unacknowledged("m", since_ms, {"peer-1": since_ms}, others=7)]
    text, _ = page_of(client, f"/views/mvds/one?id={GROUP}")
    assert "peer-1 did not acknowledge at least 1 message since" in text
