"""Incidents, taps, the monitor itself, and runbooks."""

from __future__ import annotations

import html
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from connectors.prometheus.firing import FiringAlert, FiringAlerts
from connectors.web.naming import short_key
from connectors.web.pages.taps import LISTED_TAPS
from connectors.web.words import NOTHING
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.clock import ClockFigures
from sds_core.observer.excused import Excuse, ExcusedFindings
from sds_core.observer.forgotten import Remainder
from sds_core.observer.freshness import Freshness, MissingTopic
from sds_core.observer.histogram import Histogram
from sds_core.observer.incidents import IncidentKind, IncidentQuery
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import with_channels
from tests.support.web.reading import Tags, keys, lost, text_of

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]


def test_form_selects_incidents(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """By kind, state and channel; an empty field selects all."""
    table = ChannelTable([ChannelEntry("c", name="Town")])
    stage.snapshot = snapshot({"c": totals()}).with_table(table, 0)
    stage.incidents = [lost("c/", message_id=f"m{n}") for n in range(51)] + [lost()]
    path = "/incidents?kind=lost&standing=true&channel=c%2F"
    assert len(keys(client, path, "article")) == 50
    assert stage.asked == [
        IncidentQuery("c/", IncidentKind.LOST, standing=True, limit=1_001)
    ]
    stage.incidents = [lost()]
    html = client.get("/incidents?kind=&standing=&channel=").text
    assert stage.asked[-2:] == [
        IncidentQuery(standing=True, limit=1_001),
        IncidentQuery(resolved=True, limit=50),
    ]
    text = " ".join(Tags(html).text.split())
    assert "in Town" in text
    assert 'href="channel?id=c"' in html


def test_unresolved_incidents_come_first_and_each_is_on_one_page(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """In pages of 50; who lacks what is said once, on the first one."""
    stage.snapshot = snapshot({"c": totals()})
    undelivered = IncidentKind.UNDELIVERED
    resolved = [lost(message_id=f"old{n}", ended_ms=1, lacking={}) for n in range(3)]
    standing = [lost(message_id=f"m{n}", kind=undelivered) for n in range(50)]
    stage.incidents = [*resolved, *standing]
    html = client.get("/incidents").text
    text = " ".join(Tags(html).text.split())
    assert (
        "Unresolved: 50 messages Not delivered 50 messages did not reach bob since"
        in text
    )
    assert "old0" not in text
    (link,) = [
        str(attrs["href"])
        for tag, attrs in Tags(html).found
        if tag == "a" and attrs.get("rel") == "next"
    ]
    later = text_of(client, f"/{link}")
    assert "reach bob" not in later
    assert "Arrived: " in later
    for n in range(3):
        assert f"old{n} " in later
    assert "First page" in later
    assert "Next page" not in later


def test_message_with_two_problems_counts_once(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Undelivered and unacknowledged are two incidents of one message."""
    stage.snapshot = snapshot({"c": totals()})
    kinds = (IncidentKind.UNDELIVERED, IncidentKind.UNACKNOWLEDGED)
    stage.incidents = [lost(message_id="m", kind=kind) for kind in kinds]
    assert "Unresolved: 1 message Not delivered" in text_of(client, "/incidents")
    page = text_of(client, "/channel?id=c")
    assert "Incidents: 1 message unresolved" in page


def test_incidents_of_a_participant_are_those_that_it_lacks(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """The group of who lacks what links to them, and to the runbook."""
    stage.snapshot = snapshot({"c": totals()})
    undelivered = IncidentKind.UNDELIVERED
    stage.incidents = [
        lost(message_id="m1", kind=undelivered, lacking={"bob": 1}),
        lost(message_id="m2", kind=undelivered, lacking={"bob": 1, "eve": 2}),
        lost(message_id="m3"),
    ]
    page = client.get("/incidents").text
    links = [str(a["href"]) for tag, a in Tags(page).found if tag == "a"]
    path = next(link for link in links if "participant=eve" in link)
    assert path == (
        "incidents?channel=c&standing=true&kind=undelivered&participant=eve"
    )
    for runbook in ("SdsMessagesLost", "SdsDeliveryBudgetBurn"):
        assert f"runbooks/{runbook}?channel=c" in links
    text = text_of(client, f"/{path}")
    assert "1 message did not reach eve since" in text
    assert "reach bob" not in text
    assert "m1" not in text
    assert len(keys(client, f"/{path}", "article")) == 1


@pytest.mark.parametrize("name", ["eve", "eve" * 100])
def test_messages_of_a_participant_are_found_behind_many_others(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    name: str,
) -> None:
    """However many newer incidents concern others, and however long its id is."""
    stage.snapshot = snapshot({"c": totals()})
    others = [
        lost(message_id=f"u{n}", kind=IncidentKind.UNACKNOWLEDGED) for n in range(1_100)
    ]
    since_ms = others[0].incident.since_ms
    hers = [
        lost(
            message_id=f"d{n}", kind=IncidentKind.UNDELIVERED, lacking={name: since_ms}
        )
        for n in range(60)
    ]
    stage.incidents = [*others, *hers]
    path = f"/incidents?participant={short_key(name)}"
    assert len(keys(client, path, "article")) == 50
    text = text_of(client, path)
    assert "60 messages did not reach" in text
    assert "More incidents are unresolved" not in text
    assert "Next page" in text


def test_taps_are_sorted_by_what_they_miss(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Bad taps come first with their reason, and the newest holes first."""
    now_ms = snapshot().clock_ms
    holes = [(now_ms - 5_000 * n, now_ms - 5_000 * n + 2_000) for n in range(12, 0, -1)]
    taps = {
        "good": TapTotals(now_ms - 3_000),
        "holed": TapTotals(now_ms, 1_234, now_ms - 3_000, holes),
        "silent": TapTotals(now_ms - 16_000, 0, now_ms - 3_000),
    }
    channels = {"c": totals(observers=["good", "holed"])}
    stage.snapshot = replace(snapshot(channels), taps=taps)
    assert keys(client, "/taps") == ["holed", "silent", "good"]
    text = text_of(client, "/taps")
    for part in (
        "holed Interrupted the tap was interrupted at 12:03 UTC; the monitor trusts "
        "the tap again at 12:14 UTC "
        f"{NOTHING} "
        "2026-08-09 12:03:10 UTC, 0 s ago "
        f"1 {NOTHING} 1,234 "
        "2026-08-09 12:03:05 UTC, for 2 s 2026-08-09 12:03:00 UTC, for 2 s",
        "and 2 older ones",
        f"silent Interrupted silent for 16 s {NOTHING} 2026",
        "good OK no sequence gap in the last 10 min",
        "If all taps of a channel were interrupted, the channel is blind",
    ):
        assert part in text
    stage.snapshot = snapshot()
    assert "No tap has sent a record in the last 60 min." in text_of(client, "/taps")


def test_wrong_clock_of_a_tap_is_shown_with_its_size(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot
) -> None:
    """Also of a tap whose records are all refused; small differences are delays."""
    now_ms = snapshot().clock_ms
    offsets_ms = {"good": -4_900, "slow": -90_040, "fast": 90_000, "known": 30_000}
    taps = {name: TapTotals(now_ms) for name in ("good", "slow", "known", "unknown")}
    clock = ClockFigures(0, 0, offsets_ms)
    stage.snapshot = replace(snapshot(clock=clock), taps=taps)
    assert keys(client, "/taps") == ["slow", "fast", "good", "known", "unknown"]
    text = text_of(client, "/taps")
    for part in (
        "slow Wrong clock no sequence gap in the last 10 min 90.0 s slow",
        "fast Wrong clock the monitor refuses the tap's records: see the dead letters "
        "90.0 s fast",
        "good OK no sequence gap in the last 10 min agrees",
        "known OK no sequence gap in the last 10 min 30.0 s fast",
        f"unknown OK no sequence gap in the last 10 min {NOTHING}",
        "A tap has a wrong clock",
    ):
        assert part in text


def test_alerts_that_are_held_back_are_on_first_page_channel_and_runbooks(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """With the reason, and until when messages may be missing; not if muted."""
    now_ms = snapshot().clock_ms
    span = Excuse("tap_hole", now_ms - 400_000, now_ms - 130_000)
    lost = ExcusedFindings("lost", span, 7, 0, True, "SdsMessagesLost")
    channels = {f"c{n}": totals() for n in range(8)}
    stage.snapshot = with_channels(
        snapshot(channels), excused=dict.fromkeys([*channels, "muted"], (lost,))
    )
    stage.snapshot = with_channels(stage.snapshot, muted=frozenset({"muted"}))
    why = "held back: blind 11:56 to 12:01 (tap_hole), 7 findings"
    first = text_of(client, "/")
    assert first.count(f"of c4 {why}") == 1
    assert "of c5" not in first
    assert "3 more alerts held back" in first
    assert f"SdsMessagesLost {why}" in text_of(client, "/channel?id=c7")
    every = text_of(client, "/runbooks")
    assert all(f"of c{n} {why}" in every for n in range(8))
    assert "of muted" not in every
    stage.snapshot = snapshot(channels)
    assert "held back" not in text_of(client, "/")


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (0, "No tap had a sequence gap."),
        (3, "No tap had a sequence gap in the last 10 min."),
    ],
)
def test_page_of_taps_says_what_their_numbers_show(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, missing: int, said: str
) -> None:
    """Not that a tap has everything: its node may have received less."""
    now_ms = snapshot().clock_ms
    taps = {"t": TapTotals(now_ms, missing, now_ms - 3_600_000)}
    stage.snapshot = replace(snapshot(), taps=taps)
    assert said in text_of(client, "/taps")


@pytest.mark.parametrize(
    ("ends_ms", "silent_ms", "said"),
    [
        ([0], 0, "the taps were interrupted; the next verdict is at 12:14 UTC"),
        (
            [0, 120_000],
            0,
            "the taps were interrupted; the next verdict is at 12:12 UTC",
        ),
        ([0, 120_000], 99_000, "the taps are silent"),
    ],
)
def test_blind_channel_says_when_a_verdict_returns(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    ends_ms: list[int],
    silent_ms: int,
    said: str,
) -> None:
    """Ten minutes after the last interruption of the first tap that has recovered."""
    now_ms = snapshot().clock_ms
    taps = {
        f"t{n}": TapTotals(now_ms - silent_ms, 1, now_ms - end_ms)
        for n, end_ms in enumerate(ends_ms)
    }
    blind = totals(Verdict.BLIND, verdict_reason="tap_hole", observers=list(taps))
    stage.snapshot = replace(snapshot({"c": blind}), taps=taps)
    for path in ("/", "/channel?id=c"):
        assert f"Blind {said}" in text_of(client, path)


def test_page_of_taps_is_limited(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot
) -> None:
    """Those in trouble are listed, however many others are invented."""
    now_ms = snapshot().clock_ms
    taps = {f"t{n:03}": TapTotals(now_ms) for n in range(LISTED_TAPS + 2)}
    taps["zz"] = TapTotals(now_ms - 60_000)
    stage.snapshot = replace(snapshot(), taps=taps)
    listed = keys(client, "/taps")
    assert len(listed) == LISTED_TAPS
    assert listed[0] == "zz"
    text = "The table omits 3 taps. The API lists all taps."
    assert text in text_of(client, "/taps")


def test_monitor_page_has_the_state_of_the_job(
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
        records_withheld=345,
        batch_duration=histogram(400),
        state_bytes=34_567_890,
        history_pending=22,
    )
    stage.snapshot = with_channels(
        replace(shown, undecodable={"too_large": 0, "protobuf_error": 2}),
        labels=("a",),
        remainder=Remainder(3, totals()),
    )
    text = text_of(client, "/monitor")
    for part in (
        "The query runs.",
        "Event-time lag 1.2 s",
        "Lag in records 12,345",
        "Records withheld 345",
        "p95 ≤ 0.5 s",
        "Rules compiled",
        "State 34.6 MB",
        "Channels forgotten 3",
        "Channels beyond the cardinality limit 1",
        "History rows to be written 22",
        "protobuf_error 2",
        "sds-monitor dead-letter list --reason protobuf_error",
    ):
        assert part in text
    assert "too_large" not in text
    assert "Settings of the model All the defaults" in text


def test_monitor_page_names_the_settings_of_the_model_that_were_set(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot
) -> None:
    """Beside their defaults."""
    settings = ObserverSettings(ack_deadline_ms=60_000)
    stage.snapshot = replace(snapshot({}), observer=settings)
    assert "ack_deadline_ms 60000, not 120000" in text_of(client, "/monitor")


@pytest.mark.parametrize(
    ("job", "primed", "said"),
    [
        ({"error": "no\nbroker"}, True, "The query has stopped: no broker"),
        (
            {"missing_topic": MissingTopic("frames", 1_786_276_990_123)},
            True,
            "Topic frames has been missing since 2026-08-09 12:03:10 UTC: recreate "
            "the topic",
        ),
        (
            {"missing_topic": MissingTopic("frames", 1_786_276_990_123)},
            True,
            "The query waits until the topic exists. The figures are those of the "
            "last batch.",
        ),
        (
            {"error": "no\nbroker", "retrying": True},
            True,
            "The query has stopped and restarts: no broker",
        ),
        (
            {"kafka": Freshness(1_786_276_990_123, 1.0, 15.1, "refused\nby it")},
            True,
            "Kafka has not answered since 2026-08-09 12:03:10 UTC: refused by it. The",
        ),
        (
            {"running": False},
            True,
            "The query has stopped. The figures are those of the last batch.",
        ),
        ({"running": False}, False, "The query is starting"),
        ({"event_time_lag_seconds": None}, True, "its first batch has not ended yet"),
    ],
)
def test_stopped_query_is_reported(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    job: dict[str, object],
    primed: bool,
    said: str,
) -> None:
    """On the monitor's page, with the figures that exist."""
    stage.snapshot = replace(snapshot(**job), primed=primed)
    assert said in text_of(client, "/monitor")


@pytest.mark.parametrize(
    ("clock", "facts", "said"),
    [
        (
            ClockFigures(),
            [f"Behind Kafka's {NOTHING}", f"New records ahead {NOTHING}"],
            "",
        ),
        (ClockFigures(4_960, -400), ["Behind Kafka's 5.0 s", "ahead -0.4 s"], ""),
        (
            ClockFigures(7_260),
            ["Behind Kafka's 7.3 s"],
            "This machine's clock is 7.3 s behind Kafka's.",
        ),
        (
            ClockFigures(None, 61_000),
            ["New records ahead 61.0 s"],
            "New records are stamped 61.0 s ahead of this machine's clock: "
            "it is slow, or the clock of a tap is fast.",
        ),
    ],
)
def test_monitor_page_compares_the_clock(
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    clock: ClockFigures,
    facts: list[str],
    said: str,
) -> None:
    """More than 5 s are reported, with a link to what to do."""
    stage.snapshot = snapshot(clock=clock)
    text = text_of(client, "/monitor")
    for fact in facts:
        assert fact in text
    assert (f"{said} What to do" in text) if said else ("What to do" not in text)
    page = client.get("/monitor").text
    assert ("runbooks/SdsMonitorClockWrong" in page) is bool(said)


def test_runbook_contains_no_html(client: httpx.Client, stage: Any) -> None:
    """Headings, tables and code; links lead to runbooks or are removed."""
    (stage.runbooks / "SdsLoss.md").write_text(
        "# SdsLoss\n\n| a | b |\n|---|---|\n| 1 | `x` |\n\n<b>raw</b>\n\n"
        "[next](SdsBlind.md#do) [far](../../docs/x.md) [web](https://example.org/)\n"
    )
    (stage.runbooks / "SdsBlind.md").write_text("# SdsBlind\n")
    (stage.runbooks / "not a runbook.txt").write_text("")
    assert keys(client, "/runbooks") == ["SdsBlind", "SdsLoss"]
    tags = Tags(client.get("/runbooks/SdsLoss").text)
    assert "<b>raw</b>" in tags.text
    assert {"table", "code"} <= {tag for tag, _ in tags.found}
    links = [a for tag, a in tags.found if tag == "a"]
    targets = [a.get("href") for a in links]
    assert "SdsBlind#do" in targets
    assert "https://example.org/" in targets
    assert {"title": "../../docs/x.md"} in links


RUNBOOK = """# SdsLoss

For 5 min (`gap_deadline_ms`); see [the other](SdsBlind.md#do).

```sh
sds-monitor incidents --channel my-channel
```

```promql
sds_x{channel="my-channel"}
```
"""
HOSTILE = "`$(id)` '\"\\</code><script>"
EXAMPLE = ("my-channel", '"my-channel"')


@pytest.mark.parametrize(
    ("channel", "named"),
    [
        ("", EXAMPLE),
        ("tea", ("tea", '"tea"')),
        (HOSTILE, (shlex.quote(HOSTILE), '"`$(id)` \'\\"\\\\</code><script>"')),
        # With hidden characters, it is no text to copy.
        ("a\nrm -rf", EXAMPLE),
        ("a\u202eb", EXAMPLE),
    ],
)
def test_runbook_names_the_channel_and_the_configured_durations(
    client: httpx.Client, stage: Any, channel: str, named: tuple[str, str]
) -> None:
    """In commands, queries and links, quoted for each; without one as in the file."""
    (stage.runbooks / "SdsLoss.md").write_text(RUNBOOK)
    settings = replace(stage.snapshot.observer, gap_deadline_ms=90_000)
    stage.snapshot = replace(stage.snapshot, observer=settings)
    answer = client.get("/runbooks/SdsLoss", params={"channel": channel})
    text = html.unescape(answer.text)
    shell, promql = named
    assert "90 s (<code>gap_deadline_ms</code>)" in text
    assert f"sds-monitor incidents --channel {shell}\n</code>" in text
    assert f"sds_x{{channel={promql}}}\n</code>" in text
    tags = Tags(answer.text).found
    assert [tag for tag, _ in tags].count("script") == 1
    hrefs = [a.get("href") or "" for tag, a in tags if tag == "a"]
    query = "" if named is EXAMPLE else f"?channel={quote(channel, safe='')}"
    assert [href for href in hrefs if "Blind" in href] == [f"SdsBlind{query}#do"]


def test_runbooks_are_listed_with_severity_and_meaning(
    client: httpx.Client, stage: Any
) -> None:
    """Those of the gravest alerts first; without Prometheus the page says how to."""
    for name, line in (
        ("SdsA", "**Severity:** info. A note."),
        ("SdsB", "**Severity:** warning. Soon."),
        ("SdsC", "**Severity:** critical, warning. Act now: `a` failed."),
        ("SdsD", "No such line."),
    ):
        (stage.runbooks / f"{name}.md").write_text(f"# {name}\n\n{line}\n")
    assert keys(client, "/runbooks") == ["SdsC", "SdsB", "SdsA", "SdsD"]
    text = text_of(client, "/runbooks")
    assert "SdsC critical, warning Act now: `a` failed. SdsB warning Soon." in text
    assert "start the monitor with --prometheus URL" in text


def test_firing_alerts_are_named_on_every_page(
    client: httpx.Client, stage: Any
) -> None:
    """With severity and channels, and a link to the runbook of each."""
    alerts = [
        FiringAlert("SdsMessagesLost", "critical", f"c{n}", "", "") for n in range(5)
    ]
    alerts += [FiringAlert(f"Sds{n}", "warning", "", "", "") for n in range(6)]
    stage.firing = FiringAlerts(alerts, asked=True)
    (stage.runbooks / "SdsMessagesLost.md").write_text("# SdsMessagesLost\n")
    for path in ("/", "/taps", "/runbooks/SdsMessagesLost"):
        text = text_of(client, path)
        assert "SdsMessagesLost critical, c0, c1, c2, 2 more ;" in text
        assert text.count(" warning ;") == 4
        assert "2 more" in text
    up = {
        a.get("href")
        for _, a in Tags(client.get("/runbooks/SdsMessagesLost").text).found
    }
    assert "../runbooks/SdsMessagesLost" in up
    assert "Firing: critical" in text_of(client, "/runbooks")


@pytest.mark.parametrize(
    ("firing", "note"),
    [
        (FiringAlerts([], asked=True), "No alert fires."),
        (
            FiringAlerts(asked=True, problem="Prometheus does not answer"),
            "It is unknown which alerts fire: Prometheus does not answer.",
        ),
    ],
)
def test_page_says_if_no_alert_fires_or_nobody_knows(
    client: httpx.Client, stage: Any, firing: FiringAlerts, note: str
) -> None:
    """No list is not the same as an empty one."""
    stage.firing = firing
    assert note in text_of(client, "/runbooks")
    assert "Firing" not in text_of(client, "/")
