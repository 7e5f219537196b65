"""The views as HTML: whole without a script, and never made of strangers' markup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from connectors.history.schema import ToldMinute, minute_row
from connectors.web.pages.fleet import SHOWN_CHANNELS
from sds_core.observer.channel_table import ChannelEntry, ChannelTable, Objectives
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    IncidentQuery,
)
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.totals import ChannelTotals, Histogram, TapTotals, Verdict

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

HOSTILE = ["<script>alert(1)</script>", '" onmouseover="alert(1)', "</title><b>\u202e"]
VIEWS = ["/", "/channel?id=c", "/incidents", "/taps", "/monitor", "/runbooks"]
HASH = "884c806b73fb8e79827c1ada2598a895369053663467025ae55a1d7b768f479f"


class Tags(HTMLParser):
    """Collects tags with their attributes, and the text of the body."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember one tag."""
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Remember text, one space for each run of white space."""
        self.text += " " + " ".join(data.split())


def text_of(client: httpx.Client, path: str) -> str:
    """What a page says."""
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return " ".join(Tags(answer.text).text.split())


def keys(client: httpx.Client, path: str, tag: str = "tr") -> list[str | None]:
    """Which rows or articles a page has, in order."""
    tags = Tags(client.get(path).text).found
    return [a["data-key"] for name, a in tags if name == tag and "data-key" in a]


def lost(channel: str = "c", **values: Any) -> ChannelIncident:
    """A lost message that still stands."""
    incident = Incident(
        IncidentKind.LOST,
        HASH,
        "alice",
        since_ms=1_786_276_000_000,
        found_ms=1_786_276_300_000,
        lacking={"bob": 1_786_276_060_000},
        named_by=["carol"],
        waku_hash=bytes(range(32)),
        hint=b"\x0a\x0b",
    )
    for name, value in values.items():
        setattr(incident, name, value)
    return ChannelIncident(channel, incident, tap_hole=True)


@pytest.fixture
def hostile(stage: Any, snapshot: MakeSnapshot, totals: MakeTotals) -> list[str]:
    """A stage on which every text that strangers choose is markup."""
    observers = {text: TapTotals(1, 1, 1, [(0, 1)]) for text in HOSTILE}
    channels = {
        text: totals(Verdict.FAILING, observers=HOSTILE) for text in [*HOSTILE, "c"]
    }
    entries = [ChannelEntry(text, name=f"{text}!") for text in HOSTILE]
    stage.snapshot = replace(snapshot(channels), taps=observers).with_table(
        ChannelTable(entries), 0
    )
    stage.incidents = [
        lost(
            channel,
            message_id=text,
            sender=text,
            lacking={text: 1},
            named_by=[text],
        )
        for channel in ("c", *HOSTILE)
        for text in HOSTILE
    ]
    (stage.runbooks / "SdsHostile.md").write_text(
        f"# {HOSTILE[0]}\n\n<b>x</b> [link](javascript:alert(1)) ![i](http://x/y)\n"
    )
    return HOSTILE


@pytest.mark.parametrize(
    "path",
    [
        *VIEWS,
        *(f"/channel?id={quote(text, safe='')}" for text in HOSTILE),
        *(f"/incidents?channel={quote(text, safe='')}" for text in HOSTILE),
        *(f"/?find={quote(text, safe='')}" for text in HOSTILE),
        "/channel?id=%3Cb%3Enobody",
        "/runbooks/SdsHostile",
    ],
)
@pytest.mark.usefixtures("hostile")
def test_text_of_strangers_is_never_markup(client: httpx.Client, path: str) -> None:
    """In element, attribute, sentence, title and link, on every page."""
    answer = client.get(path)
    tags = Tags(answer.text).found
    scripts = [attrs.get("src") for tag, attrs in tags if tag == "script"]
    assert [(src or "").rpartition("static/")[2] for src in scripts] == [
        "live.js?v=1.2.3"
    ]
    assert not [tag for tag, _ in tags if tag in ("b", "img", "iframe", "object")]
    assert not [n for _, attrs in tags for n in attrs if n.startswith("on")]
    assert not [a for _, a in tags if (a.get("href") or "").startswith("javascript:")]
    assert "\u202e" not in Tags(answer.text).text


@pytest.mark.parametrize("path", [*VIEWS, "/runbooks/SdsLoss", "/channel?id=nobody"])
def test_page_may_load_nothing_from_elsewhere(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    path: str,
) -> None:
    """All that a page refers to is its own and is there; no style stands in it."""
    (stage.runbooks / "SdsLoss.md").write_text("# SdsLoss\n")
    stage.snapshot = snapshot({"c": totals(first_event_ms=1)})
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag, attrs in Tags(answer.text).found:
        assert tag != "style"
        assert "style" not in attrs
        for name in ("src", "href"):
            target = attrs.get(name)
            if target and not target.startswith("#"):
                assert ":" not in target, tag
                url = httpx.URL(str(answer.url)).join(target)
                assert client.get(url).status_code == 200, target


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_begins_with_the_verdict_on_everything(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    path: str,
) -> None:
    """And says how old its figures are, and leads to the other views."""
    stage.snapshot = snapshot({"c": totals(Verdict.FAILING)})
    text = text_of(client, path)
    assert "1 of 1 channel failing: c" in text
    assert "Figures up to 2026-08-09 12:03:10 UTC" in text
    assert "Channels Incidents Taps Monitor Runbooks" in text


@pytest.mark.parametrize("path", [v for v in VIEWS if "channel" not in v])
def test_monitor_that_starts_says_so_on_every_page(
    client: httpx.Client, stage: Any, path: str
) -> None:
    """Before there is anything to show."""
    stage.snapshot = Snapshot()
    assert "Starting: reading the checkpoint" in text_of(client, path)


def test_fleet_shows_what_matters_of_each_channel(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Verdict, reason and figures, and the way to the channel."""
    failing = totals(Verdict.FAILING, verdict_reason="lost", gaps_lost=4_321)
    stage.snapshot = snapshot({"a/b c": failing}, records_behind=98_765)
    text = text_of(client, "/")
    for part in ("Failing messages were lost", "4,321", "98,765", "1: 1 failing"):
        assert part in text
    assert 'href="channel?id=a%2Fb%20c"' in client.get("/").text


def test_named_channel_keeps_its_id_and_a_muted_one_is_marked_in_words(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """A colour alone says nothing."""
    table = ChannelTable(
        [ChannelEntry("/waku/1", name="Town", mute_until_ms=1_786_276_990_000)]
    )
    stage.snapshot = snapshot({"/waku/1": totals(Verdict.FAILING)}).with_table(table, 0)
    for path in ("/", "/channel?id=/waku/1"):
        text = text_of(client, path)
        assert "Everything is fine; 1 muted" in text
        assert "Town" in text
        assert "/waku/1" in text
        assert "Muted until 2026-08-09 12:03:10 UTC" in text


def test_page_shows_only_the_most_troubled_of_many(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Two thousand channels give a page of two hundred rows that says so."""
    channels = {f"c{n:04}": totals() for n in range(1_999)}
    stage.snapshot = snapshot(channels | {"z": totals(Verdict.BLIND)})
    assert len(keys(client, "/")) == SHOWN_CHANNELS
    assert keys(client, "/")[0] == "z"
    assert "1,800 more channels not shown here" in text_of(client, "/")
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
def test_channels_are_sorted_by_what_is_asked_for(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    sort: str,
    order: str,
    aria: str,
) -> None:
    """Worst first, by name, or the other way; what cannot be measured comes last."""
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
    """Whatever the case; and says when there is none."""
    table = ChannelTable([ChannelEntry("x1", name="Town hall")])
    stage.snapshot = snapshot({"x1": totals(), "hallway": totals(), "y": totals()})
    stage.snapshot = stage.snapshot.with_table(table, 0)
    assert keys(client, "/?find=HALL") == ["hallway", "x1"]
    assert keys(client, "/?find=x1&sort=name") == ["x1"]
    assert "No channel has this in its name or id." in text_of(client, "/?find=q")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/?sort=colour", "Sort must be one of trouble, -trouble, name"),
        ("/channel?id=c&hours=2", "Hours must be one of 1, 3, 6, 24."),
        ("/incidents?kind=gone", "Kind must be one of lost, undelivered"),
    ],
)
def test_senseless_question_is_answered_by_a_page_that_says_what_would_be_right(
    client: httpx.Client, path: str, said: str
) -> None:
    """With the way back."""
    answer = client.get(path)
    assert answer.status_code == 400
    assert said in Tags(answer.text).text
    assert "All channels" in Tags(answer.text).text


def test_channel_page_says_how_the_channel_is_and_what_it_is_to_reach(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Verdict with its reason and since when, objectives, and all figures."""
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
        "Degraded recovering missing messages since 2026-08-09 12:00:00 UTC",
        "Acknowledged in time 95 % 94.90 % missed",
        "Delivered 99.5 % 100 % met",
        "Recovered late 77",
    ):
        assert part in text


def test_lost_message_and_who_lacks_it_is_read_on_the_channels_page(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """One click from the first page; its hash and hint stand there whole."""
    stage.snapshot = snapshot({"c": totals(Verdict.FAILING)})
    stage.incidents = [lost()]
    text = text_of(client, "/channel?id=c")
    for part in (
        "Lost Still stands",
        f"Message {HASH}",
        "Lacked by bob since 2026-08-09 11:47:40 UTC",
        "Named by carol",
        "Waku hash 0x000102030405060708090a0b0c0d0e0f",
        "Retrieval hint 0a0b",
        "Why Named in a causal history by carol",
        "Every tap of the channel had a hole in its records meanwhile",
    ):
        assert part in text
    assert stage.asked[0].channel == "c"


def test_charts_show_the_last_hours_as_pictures_and_as_tables(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    histogram: Callable[..., Histogram],
) -> None:
    """The intervals of the hours that are asked for, from the history."""
    minute_ms = snapshot().clock_ms // 60_000 * 60_000
    stage.snapshot = snapshot({"c": totals(first_event_ms=minute_ms)})
    figures = totals(messages=4_711, definite_latency=histogram(4_000))
    stage.minutes = [minute_row(ToldMinute(1, "c", minute_ms, figures))]
    html = client.get("/channel?id=c&hours=1").text
    assert html.count("<svg") == 5
    text = " ".join(Tags(html).text.split())
    assert "The last 1 hour" in text
    assert "12:03 ≤ 5 s ≤ 5 s ≤ 5 s" in text
    assert "12:03 4,711 0 0 0" in text
    light = client.get("/channel?id=c&hours=1&history=false").text
    assert "<svg" not in light
    assert light.count("data-kept") == 2


@pytest.mark.parametrize("path", ["/channel?id=c", "/incidents"])
def test_missing_history_is_said_where_it_is_missed(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    path: str,
) -> None:
    """Everything else on the page is there."""
    stage.snapshot = snapshot({"c": totals(Verdict.FAILING)})
    stage.has_history = False
    text = text_of(client, path)
    assert "there is no history in nowhere" in text
    assert "1 of 1 channel failing" in text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/channel?id=nobody", 404, "No channel has the id nobody."),
        ("/channel", 404, "No channel was asked for."),
        ("/runbooks/Nothing", 404, "There is no runbook of this name."),
        ("/runbooks/..%2Fsecret", 404, "Not Found"),
    ],
)
def test_page_that_is_not_there_says_so(
    client: httpx.Client, stage: Any, path: str, status: int, said: str
) -> None:
    """With a way back, and without reading what lies beside the runbooks."""
    (stage.runbooks.parent / "secret.md").write_text("secret")
    answer = client.get(path)
    assert answer.status_code == status
    assert said in Tags(answer.text).text


def test_channel_of_a_monitor_that_starts_is_not_called_unknown(
    client: httpx.Client, stage: Any
) -> None:
    """Its figures have only not been read."""
    stage.snapshot = Snapshot()
    answer = client.get("/channel?id=c")
    assert answer.status_code == 503
    assert "have not been read yet" in Tags(answer.text).text


def test_incidents_are_those_that_are_asked_for(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """By kind, state and channel; an empty field of the form asks for nothing."""
    table = ChannelTable([ChannelEntry("c", name="Town")])
    stage.snapshot = snapshot({"c": totals()}).with_table(table, 0)
    stage.incidents = [lost(message_id=f"m{n}", ended_ms=1) for n in range(201)]
    path = "/incidents?kind=lost&standing=true&channel=c%2F"
    assert len(keys(client, path, "article")) == 200
    assert stage.asked == [
        IncidentQuery("c/", IncidentKind.LOST, standing=True, limit=201)
    ]
    html = client.get("/incidents?kind=&standing=&channel=").text
    assert stage.asked[-1] == IncidentQuery(limit=201)
    text = " ".join(Tags(html).text.split())
    assert "There are more than the 200 found last" in text
    assert "in Town" in text
    assert 'href="channel?id=c"' in html


def test_taps_are_told_apart_by_what_they_miss(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Those in trouble first, each with its reason, its holes newest first."""
    now_ms = snapshot().clock_ms
    holes = [(now_ms - 5_000 * n, now_ms - 5_000 * n + 2_000) for n in range(12, 0, -1)]
    taps = {
        "good": TapTotals(now_ms - 3_000),
        "holed": TapTotals(now_ms, 1_234, now_ms - 3_000, holes),
        "silent": TapTotals(now_ms - 16_000),
    }
    channels = {"c": totals(observers=["good", "holed"])}
    stage.snapshot = replace(snapshot(channels), taps=taps)
    assert keys(client, "/taps") == ["holed", "silent", "good"]
    text = text_of(client, "/taps")
    for part in (
        "holed Troubled a hole within the last 10 min 2026-08-09 12:03:10 UTC, 0 s ago "
        "1 1,234 2026-08-09 12:03:05 UTC, for 2 s 2026-08-09 12:03:00 UTC, for 2 s",
        "and 2 older ones",
        "silent Troubled silent for 16 s",
        "good Whole shows all its records",
        "A channel all of whose taps are in trouble is blind",
    ):
        assert part in text
    stage.snapshot = snapshot()
    assert "No tap has shown a record within the last hour." in text_of(client, "/taps")


def test_monitor_tells_its_own_state(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    histogram: Callable[..., Histogram],
) -> None:
    """Progress, batches, state, labels and dead letters by reason."""
    shown = snapshot(
        {"a": totals(), "b": totals()},
        records_behind=12_345,
        batch_duration=histogram(400),
        state_bytes=34_567_890,
        history_pending=22,
    )
    stage.snapshot = replace(
        shown, labels=("a",), undecodable={"too_large": 0, "protobuf_error": 2}
    )
    text = text_of(client, "/monitor")
    for part in (
        "The query runs.",
        "Event-time lag 1.2 s",
        "Records behind 12,345",
        "p95 ≤ 0.5 s",
        "State 34.6 MB",
        "Without a label of their own 1",
        "Rows of history pending 22",
        "protobuf_error 2",
        "sds-monitor dead-letter list --reason protobuf_error",
    ):
        assert part in text
    assert "too_large" not in text


@pytest.mark.parametrize(
    ("job", "primed", "said"),
    [
        ({"error": "no\nbroker"}, True, "The query has stopped: no broker"),
        ({"running": False}, True, "The query has stopped. The figures are the last"),
        ({"running": False}, False, "The query is starting"),
        ({"event_time_lag_seconds": None}, True, "waits for its first batch"),
    ],
)
def test_query_that_does_not_run_is_said_plainly(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    job: dict[str, object],
    primed: bool,
    said: str,
) -> None:
    """On the monitor's page, with what figures there are."""
    stage.snapshot = replace(snapshot(**job), primed=primed)
    assert said in text_of(client, "/monitor")


def test_runbook_is_markdown_without_markup_of_its_own(
    client: httpx.Client, stage: Any
) -> None:
    """Headings, tables and code; links lead to other runbooks, or nowhere."""
    (stage.runbooks / "SdsLoss.md").write_text(
        "# SdsLoss\n\n| a | b |\n|---|---|\n| 1 | `x` |\n\n<b>raw</b>\n\n"
        "[next](SdsBlind.md#do) [far](../../docs/x.md) [web](https://example.org/)\n"
    )
    (stage.runbooks / "SdsBlind.md").write_text("# SdsBlind\n")
    (stage.runbooks / "not a runbook.txt").write_text("")
    assert "SdsBlind SdsLoss" in text_of(client, "/runbooks")
    tags = Tags(client.get("/runbooks/SdsLoss").text)
    assert "<b>raw</b>" in tags.text
    assert {"table", "code"} <= {tag for tag, _ in tags.found}
    links = [a for tag, a in tags.found if tag == "a"]
    targets = [a.get("href") for a in links]
    assert "SdsBlind#do" in targets
    assert "https://example.org/" in targets
    assert {"title": "../../docs/x.md"} in links
