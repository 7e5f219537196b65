"""Likely causes on the pages and in the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.mvds.window import Window
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.observer.verdict import Verdict
from tests.support.causes import RECIPIENT, explained_channel
from tests.support.snapshots import with_others
from tests.support.web.reading import lost, text_of

MakeSnapshot = Callable[..., Snapshot]

CLOCK_MS = 1_786_276_990_123
"""Of every snapshot."""


def test_page_of_a_channel_has_its_causes(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot
) -> None:
    """Each in a sentence, with the stranger's name made safe."""
    stage.snapshot = snapshot({"c": explained_channel(CLOCK_MS)})
    text = text_of(client, "/channel?id=c")
    assert (
        "Likely cause: only b<o>b\\u202e lacks the 9 undelivered messages: all others "
        "have them." in text
    )
    assert "Likely cause: nobody requests repair, so SDS-R is probably off" in text
    assert RECIPIENT not in client.get("/channel?id=c").text


def test_row_of_a_channel_has_its_causes_in_brief(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot
) -> None:
    """A row is short; one without a likely cause says nothing."""
    explained = explained_channel(CLOCK_MS)
    stage.snapshot = snapshot(
        {"c": explained, "d": explained_channel(CLOCK_MS, suspects=None)}
    )
    text = text_of(client, "/")
    brief = "Likely cause: only b<o>b\\u202e lacks messages; nobody requests repair"
    assert text.count("Likely cause") == 1
    assert brief in text


def test_api_has_causes_of_channels_and_of_listed_incidents(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot
) -> None:
    """With the counts on which they rest."""
    stage.snapshot = snapshot({"c": explained_channel(CLOCK_MS)})
    (channel,) = client.get("/api/v1/channels").json()["channels"]
    first, second = channel["causes"]
    assert (first["kind"], second["kind"]) == ("one_participant", "no_repair_requests")
    assert first["evidence"] == {
        "participant": RECIPIENT,
        "failed": 9,
        "others_arrived": 90,
    }
    assert client.get("/api/v1/channels/c").json()["causes"] == channel["causes"]
    assert client.get("/api/v1/incidents").json()["causes"] == {}
    stage.incidents = [lost("c"), lost("ended")]
    answer = client.get("/api/v1/incidents").json()
    assert answer["causes"] == {"c": channel["causes"]}


def test_group_of_another_protocol_has_its_causes(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot
) -> None:
    """By its own kind of view."""
    group = GroupTotals(
        verdict=Verdict.FAILING,
        verdict_reason="unacknowledged",
        addressed=7,
        window=Window(unacknowledged={CLOCK_MS: 5}),
    )
    others = {"mvds": Views(SHARD_VIEWS, {"g": group})}
    stage.snapshot = with_others(snapshot({}), others)
    sentence = (
        "no node of the group acknowledges: not one acknowledgement since the first "
        "record, of 7 addressed messages"
    )
    assert f"Likely cause: {sentence}." in text_of(client, "/views/mvds/one?id=g")
    assert "Likely cause: nobody acknowledges" in text_of(client, "/views/mvds")
    (found,) = client.get("/api/v1/views/mvds").json()["groups"]
    assert found["causes"] == [
        {
            "kind": "no_acknowledgements",
            "sentence": sentence,
            "evidence": {"unacknowledged": 5, "addressed": 7},
        }
    ]
