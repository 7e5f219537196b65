"""Untrusted texts and lists of any length make no oversized page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest

from sds_core.observer.incidents import Incident
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.web.reading import Tags, lost, text_of

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

LONG = "x" * 200_000
PAGE_BYTES = 200_000


@pytest.fixture
def long(stage: Any, snapshot: MakeSnapshot, totals: MakeTotals) -> list[str]:
    """A stage on which every text that strangers choose is long; gives the channels."""
    # The last one is long only in an address.
    channels = [f"{LONG}{n}" for n in range(3)] + ["\N{GRINNING FACE}" * 900]
    stage.snapshot = replace(
        snapshot({one: totals(Verdict.FAILING) for one in channels}),
        taps={LONG: TapTotals(1)},
    )
    stage.incidents = [
        lost(one, message_id=LONG, sender=LONG, lacking={LONG: 1}, named_by=[LONG])
        for one in channels
    ]
    return channels


@pytest.mark.parametrize("path", ["/", "/incidents", "/taps"])
@pytest.mark.usefixtures("long")
def test_long_texts_make_no_long_page(client: httpx.Client, path: str) -> None:
    """Nor a URL too long for a server."""
    answer = client.get(path)
    assert answer.status_code == 200
    assert len(answer.content) < PAGE_BYTES
    for _, attrs in Tags(answer.text).found:
        assert all(len(value or "") < 2_000 for value in attrs.values())


def test_channel_with_a_long_id_has_its_page(
    client: httpx.Client, stage: Any, long: list[str]
) -> None:
    """It is reached from the list, and so are its incidents and its figures as JSON."""
    rows = [
        str(attrs["href"])
        for tag, attrs in Tags(client.get("/").text).found
        if tag == "a" and str(attrs.get("href")).startswith("channel?")
    ]
    stage.incidents *= 6
    asked = set()
    for row in rows:
        answer = client.get(f"/{row}")
        assert answer.status_code == 200
        assert len(answer.content) < PAGE_BYTES
        channel = stage.asked[-1].channel
        asked.add(channel)
        links = [
            urljoin("/", str(attrs["href"]))
            for tag, attrs in Tags(answer.text).found
            if tag == "a"
            and "key=" in str(attrs.get("href"))
            # The banner links to the other channels.
            and not str(attrs.get("href")).startswith("channel?")
        ]
        assert {link.partition("?")[0] for link in links} >= {
            "/incidents",
            "/api/v1/channels",
            "/api/v1/minutes",
        }
        for link in links:
            stage.asked.clear()
            assert client.get(link).status_code == 200
            assert {query.channel for query in stage.asked} <= {channel}
        (only,) = client.get(
            next(link for link in links if "api/v1/channels" in link)
        ).json()["channels"]
        assert only["id"] == channel
    assert asked == set(long)


def test_list_of_participants_is_limited(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """The page has those that lack a message longest; the JSON has all."""
    stage.snapshot = snapshot({"c": totals()})
    names = [f"p{n:05}" for n in range(20_000)]
    lacking = {name: 1_786_276_000_000 + n for n, name in enumerate(names)}
    stage.incidents = [lost(lacking=lacking, named_by=names)]
    for path in ("/incidents", "/channel?id=c"):
        assert len(client.get(path).content) < PAGE_BYTES
        text = text_of(client, path)
        assert "p00019 since" in text
        assert "p00020" not in text
        assert text.count("and 19,980 others") == 2
        assert "p00019, 19,980 others" in text
    (found,) = client.get("/api/v1/incidents").json()["incidents"]
    assert len(found["lacking"]) == 20_000
    incident: Incident = stage.incidents[0].incident
    assert incident.named_by == names


def test_form_keeps_the_channel_whose_name_has_hidden_characters(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
) -> None:
    """A page shows their escapes, which name no channel."""
    stage.snapshot = snapshot({(name := "a\u202eb"): totals(Verdict.FAILING)})
    stage.incidents = [lost(name)]
    links = [
        str(attrs["href"])
        for tag, attrs in Tags(client.get("/").text).found
        if tag == "a" and str(attrs.get("href")).startswith("channel?")
    ]
    assert client.get(f"/{links[0]}").status_code == 200
    answer = client.get(f"/incidents?{links[0].partition('?')[2]}")
    fields = {
        str(attrs["name"]): str(attrs.get("value") or "")
        for tag, attrs in Tags(answer.text).found
        if tag == "input" and "name" in attrs and attrs.get("type") != "checkbox"
    }
    stage.asked.clear()
    client.get("/incidents", params={k: v for k, v in fields.items() if v})
    assert {query.channel for query in stage.asked} == {name}
