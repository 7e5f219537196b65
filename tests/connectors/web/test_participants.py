"""Participants of a channel, on its page and in the API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from connectors.web.reasons import reason_of
from connectors.web.sds.participants import table_of
from connectors.web.words import NOTHING
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.sds.evidence import Evidence, Found
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.participant_figures import (
    ParticipantFigures,
)
from sds_core.observer.sds.totals import BloomGauge, ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from sds_core.times import with_utc
from tests.support.channel import Channel
from tests.support.observer.deliveries import T0, lose
from tests.support.web.reading import Tags, packed, text_of

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]


def lacking(name: str, messages: int, since_ms: int) -> ParticipantFigures:
    """A participant to which messages were not delivered."""
    return ParticipantFigures(name, 1, messages, since_ms, messages)


def test_channel_page_says_what_each_participant_lacks(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Since when, what reached it, its filter, and when it was heard last."""
    now_ms = snapshot().clock_ms
    table = packed(
        ParticipantFigures(
            "participant-003",
            now_ms - 240_000,
            lacks=30,
            lacks_since_ms=now_ms - 987_123,
            undelivered=28,
            delivered=171,
            failed=28,
            filter=BloomGauge(100, 1_000, 2),
            epoch_messages=7,
        ),
        ParticipantFigures("p4", now_ms - 3_000, delivered=5),
        others=12,
    )
    stage.snapshot = snapshot({"c": totals(participant_table=table)})
    html = client.get("/channel?id=c").text
    text = " ".join(Tags(html).text.split())
    assert (
        "participant-003 4 min ago 30 11:46:43 28 85.9 % 1 % false positives 7 "
        f"p4 3 s ago 0 {NOTHING} 0 100 % {NOTHING} 0 The table omits 12 other "
        "participants. "
    ) in text
    # Only the one that lacks messages leads to them.
    hrefs = [str(a.get("href")) for tag, a in Tags(html).found if tag == "a"]
    assert "incidents?channel=c&standing=true&participant=participant-003" in hrefs
    assert not any("participant=p4" in href for href in hrefs)


def test_groups_have_the_counts_of_the_table_of_participants(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Incidents may name only some of those that lack a message."""
    now_ms = snapshot().clock_ms
    table = packed(lacking("bob", 50, now_ms - 600_000), ParticipantFigures("eve", 1))
    stage.snapshot = snapshot({"c": totals(participant_table=table)})
    who = dict.fromkeys(("bob", "eve", "dan"), now_ms - 400_000)
    found = Incident(
        IncidentKind.UNDELIVERED,
        "m",
        "alice",
        now_ms - 400_000,
        now_ms - 100_000,
        lacking=who,
        lacking_others=57,
    )
    stage.incidents = [ChannelIncident("c", found, tap_hole=False)]
    text = text_of(client, "/channel?id=c")
    assert (
        "Not delivered 50 messages did not reach bob since 11:53:10 What to do" in text
    )
    assert "at least 1 message did not reach dan since 11:56:30" in text
    assert "reach eve" not in text


def test_channel_without_figures_of_participants_says_so(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """An empty table would look like a channel without participants."""
    stage.snapshot = snapshot({"c": totals()})
    assert "No participant has sent a message in the last 120 min." in text_of(
        client, "/channel?id=c"
    )


def test_api_has_the_participants_of_a_channel(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """All figures as numbers; what is not known is null."""
    table = packed(
        ParticipantFigures("p3", 5, 3, 4, 2, 6, 2, BloomGauge(10, 100, 1, 9), 1),
        ParticipantFigures("p4", 6),
        others=1,
    )
    stage.snapshot = snapshot({"a b": totals(participant_table=table)})
    answer = client.get("/api/v1/participants?channel=a%20b")
    assert answer.json() == with_utc(
        {
            "channel": "a b",
            "channel_name": None,
            "clock": stage.snapshot.clock_ms,
            "participants": [
                {
                    "id": "p3",
                    "heard": 5,
                    "lacks": 3,
                    "lacks_since": 4,
                    "undelivered": 2,
                    "delivered": 6,
                    "failed": 2,
                    "delivered_ratio": 0.75,
                    "filter": {
                        "bits": 100,
                        "bits_set": 10,
                        "hashes": 1,
                        "false_positive_ratio": 0.1,
                        "one_percent": 9,
                    },
                    "epoch_messages": 1,
                },
                {
                    "id": "p4",
                    "heard": 6,
                    "lacks": 0,
                    "lacks_since": None,
                    "undelivered": 0,
                    "delivered": 0,
                    "failed": 0,
                    "delivered_ratio": None,
                    "filter": None,
                    "epoch_messages": 0,
                },
            ],
            "others": 1,
        }
    )


@pytest.mark.parametrize("query", ["", "?channel=nobody", "?key=0123456789abcdef"])
def test_api_refuses_participants_of_no_channel(
    client: httpx.Client, query: str
) -> None:
    """As for other questions about one channel."""
    answer = client.get(f"/api/v1/participants{query}")
    assert answer.status_code == 404
    assert "no channel has this" in answer.json()["error"]


def evidence(**found: Any) -> Evidence:
    """The evidence behind a bad verdict; by default there is none."""
    nothing: list[Found] = []
    kinds = ("lost", "undelivered", "unacknowledged", "recovered", "expired", "gaps")
    return Evidence(9, 9, False, True, **(dict.fromkeys(kinds, nothing) | found))


@pytest.mark.parametrize(
    ("lacking", "others", "sentence"),
    [
        ({"p1": [(1, 2, 3)]}, 0, "3 messages did not reach p1 in the last 10 min"),
        ({"p1": [(1, 2, 1)]}, 0, "1 message did not reach p1 in the last 10 min"),
        (
            {"p4": [(1, 2, 1)], "p3": [(1, 2, 20), (1, 3, 8)]},
            0,
            "28 messages did not reach p3, and 1 did not reach 1 other participant "
            "in the last 10 min",
        ),
        (
            {"p3": [(1, 2, 2)], "p4": [(1, 2, 1)]},
            1,
            "2 messages did not reach p3, and 1 did not reach 2 other participants "
            "in the last 10 min",
        ),
    ],
)
def test_verdict_says_whom_messages_did_not_reach(
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    lacking: dict[str, list[Found]],
    others: int,
    sentence: str,
) -> None:
    """Instead of a loss, beside a column of losses that says 0."""
    found = evidence(
        undelivered=[one for some in lacking.values() for one in some],
        lacking=[*lacking.items()],
        lacking_others=others,
    )
    figures = totals(Verdict.DEGRADED, verdict_reason="undelivered", evidence=found)
    found_reason = reason_of(snapshot({"c": figures}), figures, CHANNELS)
    assert found_reason.partition(" (")[0] == sentence


def test_verdict_names_nobody_who_lacks_only_older_messages(
    snapshot: MakeSnapshot,
) -> None:
    """What bob has lacked for longer than the window is not the reason."""
    channel = Channel.after_warm_up()
    for name in ("bob", "carol"):
        channel.sync(name, at=T0 - 1_000, lamport=500)
    ids = [f"m{number}" for number in range(8)]
    for number, one in enumerate(ids):
        channel.content(one, "alice", at=T0 + number, lamport=1_000 + number)
    lose(channel, "bob", lamport=2_000)
    for number in range(1, 6):
        at = T0 + 340_000 + number * 200_000
        channel.sync("bob", at=at, lamport=2_200 + number, holds=[])
        channel.sync("carol", at=at + 1, lamport=2_300 + number, holds=ids)
    at = T0 + 1_500_000
    channel.content("x", "alice", at=at, lamport=5_000)
    for number in range(3):
        later = at + 10_000 + number * 151_000
        channel.sync("carol", at=later, lamport=5_100 + number, holds=ids)
        channel.sync("bob", at=later + 1, lamport=5_200 + number, holds=["x"])
    assert channel.verdict == ("failing", "undelivered")
    bob, *_ = table_of(channel.totals).participants
    assert (bob.name, bob.undelivered) == ("bob", 8)
    shown = snapshot({"c": channel.totals})
    assert reason_of(shown, channel.totals, CHANNELS).startswith(
        "1 message did not reach carol in the last 10 min (1 of "
    )


def test_verdict_says_how_many_messages_were_lost_to_everybody(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Those in the window of the verdict."""
    found = evidence(lost=[(1, 2, 2), (3, 4, 1)])
    figures = totals(Verdict.FAILING, verdict_reason="lost", evidence=found)
    shown = snapshot({"c": figures})
    sentence = "3 messages reached nobody but their senders in the last 10 min"
    assert reason_of(shown, figures, CHANNELS) == sentence


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("lost", "1 message reached nobody but its sender in the last 10 min"),
        (
            "undelivered",
            "1 message did not reach eve in the last 10 min (1 of 9 deliveries; "
            "limit 1 %)",
        ),
    ],
)
def test_reason_leaves_out_what_a_hole_of_the_taps_excuses(
    snapshot: MakeSnapshot, totals: MakeTotals, reason: str, sentence: str
) -> None:
    """As the verdict does."""
    now_ms = snapshot().clock_ms
    in_hole = (now_ms - 500_000, now_ms - 400_000, 7)
    after = (now_ms - 100_000, now_ms - 10_000, 1)
    found = evidence(
        lost=[in_hole, after],
        undelivered=[in_hole, after],
        lacking=[("bob", [in_hole]), ("eve", [after])],
    )
    figures = totals(
        Verdict.FAILING, verdict_reason=reason, evidence=found, observers=["t"]
    )
    holes = [(now_ms - 450_000, now_ms - 440_000)]
    taps = {"t": TapTotals(now_ms, 1, now_ms - 440_000, holes)}
    shown = replace(snapshot({"c": figures}), taps=taps)
    assert reason_of(shown, figures, CHANNELS) == sentence


@pytest.mark.parametrize(
    ("silent_ms", "sentence"),
    [
        (3_000, "the taps were interrupted; the next verdict is at 12:13 UTC"),
        (60_000, "the taps are silent"),
    ],
)
def test_blind_channel_says_when_there_is_a_verdict_again(
    snapshot: MakeSnapshot, totals: MakeTotals, silent_ms: int, sentence: str
) -> None:
    """The first tap without a hole in the window decides."""
    now_ms = snapshot().clock_ms
    figures = totals(Verdict.BLIND, verdict_reason="tap_hole", observers=["t1", "t2"])
    holes = [(now_ms - 90_000, now_ms - 60_000)]
    tap = TapTotals(now_ms - silent_ms, 1, now_ms - 60_000, holes)
    later = TapTotals(now_ms - silent_ms, 1, now_ms - 1_000, holes)
    shown = replace(snapshot({"c": figures}), taps={"t1": tap, "t2": later})
    assert reason_of(shown, figures, CHANNELS) == sentence
