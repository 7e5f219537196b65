"""The list of channels, and the page of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from connectors.history.schema import NumberedMinute, minute_row
from connectors.web.pages.fleet import LISTED_VIEWS
from sds_core.observer.channel_table import ChannelEntry, ChannelTable, Objectives
from sds_core.observer.histogram import Histogram
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from tests.support.web.reading import HASH, Tags, keys, lost, text_of

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]


def test_fleet_has_the_state_of_each_channel(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Verdict, reason and figures, and a link to the channel."""
    failing = totals(Verdict.FAILING, verdict_reason="lost", gaps_lost=4_321)
    stage.snapshot = snapshot({"a/b c": failing}, records_behind=98_765)
    text = text_of(client, "/")
    for part in (
        "Failing messages were lost in the last 10 min",
        "4,321",
        "98,765",
        "1: 1 failing",
    ):
        assert part in text
    assert 'href="channel?id=a%2Fb%20c"' in client.get("/").text


def test_fleet_page_is_limited_to_the_worst_channels(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Of 2,000 channels the page has 200 rows, and says so."""
    channels = {f"c{n:04}": totals() for n in range(1_999)}
    stage.snapshot = snapshot(channels | {"z": totals(Verdict.BLIND)})
    assert len(keys(client, "/")) == LISTED_VIEWS
    assert keys(client, "/")[0] == "z"
    assert "The table omits 1,800 channels: filter" in text_of(client, "/")
    assert keys(client, "/?find=C1998") == ["c1998"]


@pytest.mark.parametrize(
    ("sort", "order", "aria"),
    [
        ("trouble", "bacd", "ascending"),
        ("-trouble", "dcab", "descending"),
        ("name", "dbca", "ascending"),
        ("-name", "acbd", "descending"),
        ("messages", "cbad", "descending"),
        ("-messages", "dabc", "ascending"),
        ("in_time", "bacd", "ascending"),
        ("-in_time", "acbd", "descending"),
    ],
)
def test_channels_are_sorted_by_the_chosen_column(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    sort: str,
    order: str,
    aria: str,
) -> None:
    """By default the worst first; figures without a value come last."""
    channels = {
        "a": totals(Verdict.DEGRADED, messages=2, acknowledged_in_time=1),
        "b": totals(Verdict.FAILING, messages=3, unacknowledged=1),
        "c": totals(messages=4, acknowledged_in_time=9),
        "d": totals(),
    }
    table = ChannelTable([ChannelEntry("d", name="A"), ChannelEntry("a", name="z")])
    stage.snapshot = snapshot(channels).with_table(table, 0)
    assert "".join(str(key) for key in keys(client, f"/?sort={sort}")) == order
    heads = [
        a for tag, a in Tags(client.get(f"/?sort={sort}").text).found if tag == "th"
    ]
    assert [
        a["aria-sort"] for a in heads if a.get("aria-sort") not in ("none", None)
    ] == [aria]


def test_filter_finds_part_of_a_name_or_an_id(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """In any case; the page says if no channel matches."""
    table = ChannelTable([ChannelEntry("x1", name="Town hall")])
    stage.snapshot = snapshot({"x1": totals(), "hallway": totals(), "y": totals()})
    stage.snapshot = stage.snapshot.with_table(table, 0)
    assert keys(client, "/?find=HALL") == ["hallway", "x1"]
    assert keys(client, "/?find=x1&sort=name") == ["x1"]
    assert "No channel has this text in its name or id." in text_of(client, "/?find=q")


def test_channel_page_has_verdict_objectives_and_figures(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """The verdict has its reason and since when it holds."""
    figures = totals(
        Verdict.DEGRADED,
        verdict_reason="recovering",
        verdict_since_ms=1_786_276_800_000,
        acknowledged_in_time=949,
        unacknowledged=51,
        deliveries_first_pass=3,
        gaps_recovered_late=77,
    )
    entry = ChannelEntry("c", objectives=Objectives(delivery=0.995))
    stage.snapshot = snapshot({"c": figures}).with_table(ChannelTable([entry]), 0)
    text = text_of(client, "/channel?id=c")
    for part in (
        "Degraded messages were missing in the last 10 min "
        "degraded since 2026-08-09 12:00:00 UTC",
        "Acknowledged in time 95 % 94.90 % missed",
        "Delivered 99.5 % 100 % met",
        "Recovered late 77",
    ):
        assert part in text


def test_channel_page_has_lost_messages_and_who_lacks_them(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """One click from the first page, with complete hash and hint."""
    stage.snapshot = snapshot({"c": totals(Verdict.FAILING)})
    undelivered = IncidentKind.UNDELIVERED
    stage.incidents = [lost(kind=undelivered, message_id=f"m{n}") for n in range(9)]
    stage.incidents.append(lost())
    text = text_of(client, "/channel?id=c")
    assert text.index(HASH) < text.index("Message m0") < text.index("Message m4")
    assert "m5" not in text
    assert "All incidents of this channel" in text
    for part in (
        "Incidents: 10 messages unresolved",
        "Lost to everybody 1 message reached nobody but its sender since 11:46:40",
        "Not delivered 9 messages did not reach bob since 11:47:40 "
        "taps may have missed 9 of the messages What to do",
        "from alice since 11:46:40 Unresolved",
        "to bob since 11:46:40 Unresolved",
        f"Message {HASH}",
        "Lacked by bob since 2026-08-09 11:47:40 UTC",
        "Named by carol",
        "Waku hash 0x000102030405060708090a0b0c0d0e0f",
        "Retrieval hint 0a0b",
        "Why Reached nobody but the sender: carol named it",
        "The taps were interrupted shortly before or during this incident",
    ):
        assert part in text
    assert stage.asked[0].channel == "c"


def test_charts_have_the_last_hours_as_pictures_and_tables(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    histogram: Callable[..., Histogram],
) -> None:
    """Intervals follow the chosen hours and come from the history."""
    minute_ms = snapshot().clock_ms // 60_000 * 60_000
    first_ms = minute_ms - 3 * 3_600_000
    stage.snapshot = snapshot({"c": totals(first_event_ms=first_ms)})
    zero = NumberedMinute(1, "c", first_ms, totals())
    figures = totals(messages=4_711, definite_latency=histogram(4_000))
    stage.minutes = [
        minute_row(one) for one in (zero, NumberedMinute(2, "c", minute_ms, figures))
    ]
    html = client.get("/channel?id=c&hours=1").text
    assert html.count("<svg") == 2
    assert html.count("No data exists for this period.") == 3
    text = " ".join(Tags(html).text.split())
    assert "The last 1 hour" in text
    assert "12:03 ≤ 5 s ≤ 5 s ≤ 5 s" in text
    assert "12:03 4,711 0 0 0" in text
    assert "intervals of 1 min; times are event times in UTC" in text
    light = client.get("/channel?id=c&hours=1&history=false").text
    assert "<svg" not in light
    assert light.count("data-kept") == 2


def test_charts_of_a_young_channel_begin_with_it(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """And say where earlier minutes are missing."""
    minute_ms = snapshot().clock_ms // 60_000 * 60_000
    first_ms = minute_ms - 20 * 60_000
    young = totals(first_event_ms=first_ms, messages=9)
    stage.snapshot = snapshot({"c": young})
    row = minute_row(NumberedMinute(1, "c", first_ms, totals(messages=3)))
    stage.minutes = [row]
    text = text_of(client, "/channel?id=c&hours=24")
    assert "Since 11:43 UTC" in text
    assert "intervals of 1 min; times are event times in UTC" in text
    assert "11:43 3 0 0 0" in text
    assert "11:42" not in text
    stage.snapshot = snapshot({"c": totals(first_event_ms=1)})
    text = text_of(client, "/channel?id=c&hours=24")
    assert "intervals of 1 min; the history has no earlier minutes" in text


def test_page_says_that_charts_without_a_clock_are_missing(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """They are not those before 1970."""
    stage.snapshot = replace(snapshot({"c": totals()}), clock_ms=0)
    html = client.get("/channel?id=c").text
    assert "no record has been read yet" in html
    assert "<svg" not in html
