"""Common to all views: verdict, headers, and no untrusted markup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.freshness import Freshness
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import snapshot_of
from tests.support.web.reading import Tags, lost, text_of

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

HOSTILE = [
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "</title><b>\u202e\x1b[1m",
]
VIEWS = [
    "/",
    "/channel?id=c",
    "/incidents",
    "/planning",
    "/taps",
    "/monitor",
    "/runbooks",
]


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
def test_untrusted_text_is_never_markup(client: httpx.Client, path: str) -> None:
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
    assert not any(hidden in answer.text for hidden in "\u202e\x1b")


@pytest.mark.parametrize("path", [*VIEWS, "/runbooks/SdsLoss", "/channel?id=nobody"])
def test_page_loads_nothing_from_other_hosts(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    path: str,
) -> None:
    """Every reference is local and exists; no inline style."""
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
    """It says how old its figures are and links to the other views."""
    stage.snapshot = snapshot({"c": totals(Verdict.FAILING)})
    text = text_of(client, path)
    assert "1 of 1 channel failing: c" in text
    assert "Figures up to 2026-08-09 12:03:10 UTC" in text
    assert "Channels Incidents Planning Taps Monitor Runbooks" in text


def test_monitor_page_says_that_kafka_has_not_answered_since_the_start(
    client: httpx.Client, stage: Any
) -> None:
    """With the cause; there are no older figures."""
    kafka = Freshness(None, 1.0, 15.1, "no broker", 1_786_276_990_123)
    stage.snapshot = snapshot_of(job=JobFigures(kafka=kafka))
    text = text_of(client, "/monitor")
    assert (
        "The monitor waits for Kafka. When Kafka answers, the monitor starts the "
        "query." in text
    )
    assert (
        "Kafka has not answered since the start at 2026-08-09 12:03:10 UTC: no broker. "
        "No figures exist yet."
    ) in text


@pytest.mark.parametrize("path", VIEWS)
def test_starting_monitor_says_so_on_every_page(
    client: httpx.Client, stage: Any, path: str
) -> None:
    """It does not report missing figures as zero."""
    stage.snapshot = snapshot_of()
    text = text_of(client, path)
    assert "Starting Spark, about 10 s" in text
    if path not in ("/monitor", "/runbooks"):
        assert "The monitor has not read its figures yet." in text
    if path != "/runbooks":
        assert "no channel" not in text.lower()
        assert "There are none" not in text
    assert stage.asked == []


def test_named_channel_keeps_its_id_and_a_muted_one_is_marked_in_words(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """A colour alone would not be accessible."""
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


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/?sort=colour", "Sort must be one of trouble, -trouble, name"),
        ("/channel?id=c&hours=2", "Hours must be one of 1, 3, 6, 24, not 2."),
        ("/incidents?kind=gone", "Kind must be one of lost, undelivered"),
    ],
)
def test_invalid_query_gives_a_page_with_what_would_be_valid(
    client: httpx.Client, path: str, said: str
) -> None:
    """The page has a link back."""
    answer = client.get(path)
    assert answer.status_code == 400
    assert said in Tags(answer.text).text
    assert "All channels" in Tags(answer.text).text


@pytest.mark.parametrize("path", ["/channel?id=c", "/incidents"])
def test_missing_history_is_reported_where_it_is_needed(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    path: str,
) -> None:
    """All else on the page is there."""
    stage.snapshot = snapshot({"c": totals(Verdict.FAILING)})
    stage.has_history = False
    text = text_of(client, path)
    assert "no history was found in nowhere" in text
    assert "1 of 1 channel failing" in text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/channel?id=nobody", 404, "No channel has the id nobody."),
        ("/channel", 404, "The address of this page does not name a channel."),
        ("/runbooks/Nothing", 404, "No runbook has this name."),
        ("/runbooks/..%2Fsecret", 404, "Nothing was found at this address."),
        ("/nowhere", 404, "Nothing was found at this address."),
        ("/channel?key=1", 404, "No channel has this key."),
    ],
)
def test_unknown_page_is_a_404(
    client: httpx.Client, stage: Any, path: str, status: int, said: str
) -> None:
    """With a link back; files beside the runbooks cannot be read."""
    (stage.runbooks.parent / "secret.md").write_text("secret")
    answer = client.get(path)
    assert answer.status_code == status
    assert said in Tags(answer.text).text
    assert "All channels" in Tags(answer.text).text
