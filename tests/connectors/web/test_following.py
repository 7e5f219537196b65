"""Messages that the monitor follows no longer, and channels that have ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from connectors.web.incident_words import follows
from connectors.web.lacks import group_words
from connectors.web.paging import ListedIncident, PageQuery, next_page
from sds_core.observer.forgotten import Remainder
from sds_core.observer.incidents import ChannelIncident, IncidentKind, IncidentQuery
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from streaming.cli.live import live_view
from streaming.ledger.findings import Findings
from tests.support.channel import Channel
from tests.support.frames import START_MS
from tests.support.observer.deliveries import T0, lose
from tests.support.snapshots import with_channels
from tests.support.streaming.ledger import ledger_in
from tests.support.web.reading import Tags, lost, text_of

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]


def sentences(snapshot: Snapshot, channel: Channel, at: int) -> tuple[list[str], ...]:
    """What bob lacks, and what was not seen to reach him, at a time since the start."""
    shown = with_channels(
        replace(snapshot, clock_ms=START_MS + at), totals={"c": channel.totals}
    )
    found = [ChannelIncident("c", one, False) for one in channel.incidents.values()]
    lacks = group_words(shown, CHANNELS, found)
    return tuple(
        [one.sentence for one in groups.groups if "bob" in one.sentence]
        for groups in (lacks.now, lacks.past)
    )


def test_message_that_arrives_after_an_hour_is_not_lacked_for_ever(
    snapshot: MakeSnapshot,
) -> None:
    """Its incident does not end: the monitor follows a message for an hour."""
    channel = Channel.after_warm_up()
    channel.sync("bob", at=T0 - 1_000, lamport=500)
    channel.content("m", "alice", at=T0)
    at = lose(channel)
    now, past = sentences(snapshot(), channel, at)
    assert [one.partition(" since")[0] for one in now] == [
        "1 message did not reach bob"
    ]
    assert past == []
    for number in range(14):
        at += 300_000
        channel.sync("bob", at=at, lamport=2_000 + number, holds=[])
    channel.sync("bob", at=at + 1_000, lamport=3_000, holds=["m"])
    for later in (at + 1_000, at + 86_400_000):
        channel.clock(later)
        now, (sentence,) = sentences(snapshot(), channel, later)
        assert now == []
        assert sentence.endswith("was not seen to reach bob")


@pytest.mark.parametrize("path", ["/incidents", "/channel?id=c"])
def test_pages_list_older_messages_apart(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    path: str,
) -> None:
    """With what was seen of them, and until when they were followed."""
    stage.snapshot = snapshot({"c": totals()})
    since_ms = stage.snapshot.clock_ms - 3_600_001
    kind = IncidentKind.UNDELIVERED
    stage.incidents = [
        lost(message_id="new", kind=kind),
        lost(message_id="old", kind=kind, since_ms=since_ms, lacking={"eve": since_ms}),
    ]
    html = client.get(path).text
    text = text_of(client, path)
    assert "1 message did not reach bob since" in text
    assert "did not reach eve" not in text
    assert "1 message unresolved" in text or "Unresolved: 1 message Not" in text
    assert (
        "No longer followed: 1 message The monitor follows each message for 60 min"
        in text
    )
    assert "1 message since 11:03:10 was not seen to reach eve" in text
    assert "At least one participant is not known to have received the message" in text
    assert "Followed until 2026-08-09 12:03:10 UTC" in text
    stands = {
        str(attrs["data-stands"]) for tag, attrs in Tags(html).found if tag == "article"
    }
    assert stands == {"true", "false"}


@pytest.mark.parametrize("channel", ["gone", "gone" * 50])
def test_incident_of_a_channel_that_has_ended_is_not_unresolved(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, channel: str
) -> None:
    """And no link leads to a page that does not exist."""
    stage.snapshot = snapshot()
    stage.incidents = [lost(channel)]
    html = client.get("/incidents").text
    text = text_of(client, "/incidents")
    assert "Unresolved: 0 messages No longer followed: 1 message" in text
    assert "was seen at nobody but its sender" in text
    assert ": the channel has ended" in text
    assert "Followed until the channel ended" in text
    links = [str(a["href"]) for tag, a in Tags(html).found if tag == "a"]
    assert not any(link.startswith("channel?") for link in links)
    for link in links:
        if link.startswith("incidents?"):
            assert client.get(f"/{link}").status_code == 200


def test_channel_that_has_returned_is_a_new_one(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """What was found before its first record is followed no longer."""
    one = lost()
    for first_ms, is_followed in ((-1, True), (1, False)):
        figures = totals(first_event_ms=one.incident.found_ms + first_ms)
        assert follows(snapshot({"c": figures}), one, CHANNELS) is is_followed


def test_list_goes_on_after_a_channel_with_a_long_id_that_has_ended(
    tmp_path: Path,
) -> None:
    """Only channels that exist are found by their key."""
    findings = Findings(ledger_in(tmp_path), CHANNELS)
    for channel in ("x" * 200, "y"):
        findings.record_incidents({channel: [lost(channel).incident]})
    first, second = findings.find_incidents(IncidentQuery())
    after = next_page(ListedIncident.of(first))
    place = PageQuery(after=after).place(ListedIncident)
    assert place is not None
    rest = findings.find_incidents(IncidentQuery(after=place.find(["y"])))
    assert rest == [second]


def test_all_is_well_after_all_channels_have_ended(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """The monitor does not wait for a first channel then."""
    ended = with_channels(snapshot(), remainder=Remainder(1, totals()))
    assert not snapshot().ok
    assert ended.ok
    stage.snapshot = ended
    assert "Nothing to watch: all channels have ended" in text_of(client, "/")
    terminal = Console(width=100, record=True, file=StringIO())
    terminal.print(live_view(ended, "http://x", 100, 20))
    printed = terminal.export_text()
    assert "all channels have ended" in printed
    assert "no channel has been seen yet" not in printed
