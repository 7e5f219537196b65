"""The views in a real browser: live, offline, by keyboard, on a phone, in the dark."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from connectors.history.schema import NumberedMinute, minute_row
from connectors.prometheus.firing import FiringAlert, FiringAlerts
from connectors.web.server import WebServer
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.growth import Recorded, counted_values
from sds_core.observer.histogram import Histogram
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.participant_figures import (
    ParticipantFigures,
    ParticipantTable,
)
from sds_core.observer.sds.totals import BloomGauge, ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.web.reading import HASH, lost

pytestmark = pytest.mark.browser

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

HOSTILE = "<img src=x onerror=alert(1)>"
ESCAPED = f"{HOSTILE}'\n\u202e"
VIEWS = {
    "fleet": "/",
    "channel": "/channel?id=%2Fwaku%2F1",
    "incidents": "/incidents",
    "taps": "/taps",
    "monitor": "/monitor",
    "runbooks": "/runbooks",
    "runbook": "/runbooks/SdsLoss",
    "problem": "/channel?id=nobody",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium: the system's, or else Playwright's own."""
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        )
        yield launched
        launched.close()


@pytest.fixture
def complaints() -> list[str]:
    """What pages write to the console, their errors, and requests to elsewhere."""
    return []


@pytest.fixture
def page(browser: Browser, served: str, complaints: list[str]) -> Iterator[Page]:
    """An empty tab at desktop width that reaches nothing but the monitor."""
    tab = browser.new_page(
        base_url=served,
        viewport={"width": 1280, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
    )

    def only_the_monitor(route: Any) -> None:
        if route.request.url.startswith(served):
            route.continue_()
        else:
            complaints.append(route.request.url)
            route.abort()

    tab.route("**/*", only_the_monitor)
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    yield tab
    tab.close()


@pytest.fixture
def busy(
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    histogram: Callable[..., Histogram],
) -> Any:
    """A stage on which every view has something of everything to show."""
    minute_ms = snapshot().clock_ms // 60_000 * 60_000
    channels = {
        "/waku/1": totals(
            Verdict.FAILING,
            verdict_reason="lost",
            first_event_ms=minute_ms - 120_000,
            unacknowledged=3,
            acknowledged_in_time=9,
            gaps_lost=2,
            messages=123_456,
            definite_latency=histogram(900_000),
            observers=["t1"],
            participant_table=msgspec.msgpack.encode(
                ParticipantTable(
                    [
                        ParticipantFigures(
                            "participant-003",
                            minute_ms,
                            *(28, minute_ms - 900_000, 28, 171, 28),
                            BloomGauge(100, 1_000, 2),
                        ),
                        ParticipantFigures(HOSTILE * 9, minute_ms - 3_000),
                    ],
                    others=7,
                )
            ),
        ),
        HOSTILE * 9: totals(Verdict.BLIND),
        "muted": totals(Verdict.FAILING),
    } | {verdict.value: totals(verdict) for verdict in Verdict}
    table = ChannelTable(
        [ChannelEntry("/waku/1", name="Town"), ChannelEntry("muted", mute_until_ms=1)]
    )
    now_ms = minute_ms + 10_000
    taps = {
        "t1": TapTotals(now_ms),
        HOSTILE: TapTotals(now_ms - 99_000, 7, now_ms, [(now_ms - 9_000, now_ms)]),
    }
    stage.snapshot = replace(
        snapshot(channels), taps=taps, undecodable={"protobuf_error": 2}
    ).with_table(table, 0)
    stage.minutes = [
        minute_row(
            NumberedMinute(
                n,
                "/waku/1",
                minute_ms - 60_000 * (2 - n),
                totals(
                    messages=5 * n,
                    gaps_lost=n,
                    repair_answered=2 * n,
                    acknowledged_in_time=9 * n,
                    definite_latency=histogram(*[4_000] * n),
                ),
            )
        )
        for n in (1, 2)
    ]
    stage.incidents = [
        lost("/waku/1"),
        lost(
            "/waku/1",
            kind=IncidentKind.UNDELIVERED,
            message_id="m2",
            lacking={"participant-003": minute_ms - 900_000, HOSTILE * 9: minute_ms},
        ),
        lost("/waku/1", message_id=ESCAPED, sender=HOSTILE, ended_ms=1_786_276_400_000),
    ]
    stage.firing = FiringAlerts(
        [
            FiringAlert("SdsLoss", "critical", "/waku/1", "Messages are lost.", ""),
            FiringAlert(HOSTILE * 9, "warning", HOSTILE * 9, "", ""),
        ],
        asked=True,
    )
    for alert in ("SdsMessagesLost", "SdsDeliveryBudgetBurn"):
        (stage.runbooks / f"{alert}.md").write_text(f"# {alert}\n\n## What to do\n")
    (stage.runbooks / "SdsLoss.md").write_text(
        "# SdsLoss\n\n**Severity:** critical, warning. Messages are lost.\n\n## Do\n\n"
        "| a | b |\n|---|---|\n| 1 | `x` |\n\n"
        f"```\nsds-monitor {'x' * 200}\n```\n"
    )
    return stage


@pytest.mark.parametrize(
    ("scheme", "rules", "ground"),
    [
        ("light", {}, "rgb(246, 247, 249)"),
        # Nothing but colours differs.
        ("dark", {"runOnly": ["color-contrast"]}, "rgb(18, 23, 28)"),
    ],
)
@pytest.mark.usefixtures("busy")
def test_every_view_is_accessible_and_loads_offline(
    page: Page, complaints: list[str], scheme: Any, rules: dict[str, Any], ground: str
) -> None:
    """No serious violation found by axe, no console error, no foreign request."""
    axe = Axe()
    page.emulate_media(color_scheme=scheme)
    found = []
    grounds = set()
    for name, path in VIEWS.items():
        page.goto(path)
        for details in page.locator("details").all():
            details.evaluate("one => { one.open = true }")
        # axe's own script comes by the debugger, past the page's policy.
        for violation in axe.run(page, options=rules).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["html"] for node in violation["nodes"]][:3]
                found.append((name, violation["id"], nodes))
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert found == []
    # The page that is not there is answered so on purpose.
    assert [text for text in complaints if "404" not in text] == []
    assert grounds == {ground}


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.usefixtures("busy")
def test_no_view_scrolls_sideways(page: Page, width: int) -> None:
    """On a phone only tables do, in a box of their own; on a desktop none."""
    page.set_viewport_size({"width": width, "height": 844})
    for name, path in VIEWS.items():
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
        boxes = page.locator(".scroll").evaluate_all(
            "boxes => boxes.map((box) => box.scrollWidth - box.clientWidth)"
        )
        assert width < 1280 or not any(boxes), name


@pytest.mark.usefixtures("busy")
def test_taps_need_no_scrolling_on_a_phone(page: Page) -> None:
    """Each tap is a list of named facts, and still a table for a screen reader."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/taps")
    box = page.get_by_role("region")
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") == 0
    row = page.get_by_role("row").filter(has_text="7").last
    expect(row.get_by_role("rowheader")).to_have_text(HOSTILE)
    missing = row.get_by_role("cell").filter(has_text=re.compile("^7$"))
    named = missing.evaluate("one => getComputedStyle(one, '::before').content")
    assert "Skipped numbers" in named


def test_figures_since_the_first_record_stay_chosen(
    page: Page, complaints: list[str], stage: Any, snapshot: Any, totals: MakeTotals
) -> None:
    """A sort, a filter and an update keep the choice; one click leads back."""
    old = totals(first_event_ms=1, messages=1_042)
    stage.snapshot = snapshot({"a": old, "b": totals(messages=77)})
    values = counted_values(CHANNEL_FIGURES, totals(messages=1_000))
    stage.recent = {"a": [Recorded(1, values)]}
    page.goto("/")
    messages = page.locator("tbody tr").first.locator("td.figure").first
    expect(messages).to_have_text("42")
    assert page.locator("tbody .bars").count() == 2
    page.get_by_role("link", name="Since the first record").click()
    expect(messages).to_have_text("1,042")
    page.get_by_role("button", name="Messages").click()
    page.get_by_label("Name or id").fill("a")
    expect(page.locator("tbody tr")).to_have_count(1)
    stage.snapshot.channels["a"].messages = 1_043
    expect(messages).to_have_text("1,043")
    expect(page.locator(".bars")).to_have_count(0)
    page.get_by_role("link", name="Last hour").click()
    expect(messages).to_have_text("43")
    assert page.url.endswith("/?window=hour&find=a&sort=messages")
    assert complaints == []


def test_young_channel_fills_the_width_of_its_charts(
    page: Page,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    histogram: Callable[..., Histogram],
) -> None:
    """And charts without values say so, instead of an empty picture."""
    minute_ms = snapshot().clock_ms // 60_000 * 60_000
    minutes = [
        NumberedMinute(
            n,
            "c",
            minute_ms - 60_000 * (10 - n),
            totals(messages=n + 1, definite_latency=histogram(*[900] * (n + 1))),
        )
        for n in range(10)
    ]
    stage.snapshot = snapshot({"c": totals(first_event_ms=minutes[0].minute_ms)})
    stage.minutes = [minute_row(one) for one in minutes]
    page.goto("/channel?id=c&hours=24")
    chart = page.locator('figure[data-key="latency"]')
    line, plot = (
        chart.locator(f"svg {part}").first.bounding_box()
        for part in (".color-1 .line", ".plot > .background")
    )
    assert line
    assert plot
    assert line["width"] > 0.8 * plot["width"]
    expect(chart).to_contain_text("p95 ≤ 1 s")
    gaps = page.locator('figure[data-key="gaps"]')
    expect(gaps).to_contain_text("Nothing in this time.")
    expect(gaps.locator("svg")).to_have_count(0)


def test_fleet_follows_the_snapshot(
    page: Page,
    complaints: list[str],
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
) -> None:
    """Rows appear, change, move and vanish in the open page."""
    stage.snapshot = snapshot({"a": totals(), HOSTILE: totals(Verdict.QUIET)})
    page.goto("/")
    names = page.locator("tbody th a")
    expect(names).to_have_text([HOSTILE, "a"])
    page.get_by_role("rowheader").get_by_role("link", name="a", exact=True).focus()

    worse = totals(Verdict.FAILING, verdict_reason="lost", gaps_lost=1)
    stage.snapshot = snapshot(
        {"a": worse, "new": totals(), "<b>": totals(Verdict.BLIND)}, records_behind=5
    )
    expect(names).to_have_text(["a", "<b>", "new"])
    expect(page.locator("tbody tr").first).to_contain_text("messages reached nobody")
    expect(page.locator("body")).to_have_attribute("data-level", "trouble")
    expect(page).to_have_title(
        "1 of 3 channels failing: a; 1 of 3 channels blind: <b> · sds-monitor"
    )
    # Somebody who reads by keyboard is not thrown back to the top.
    expect(
        page.get_by_role("rowheader").get_by_role("link", name="a", exact=True)
    ).to_be_focused()
    live = page.locator("body").inner_html()
    page.reload()
    assert page.locator("body").inner_html() == live
    assert complaints == []


def test_order_and_filter_are_kept_while_figures_change(
    page: Page, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """By keyboard, without loading the page again, and in its URL."""
    stage.snapshot = snapshot({"a": totals(messages=1), "b": totals(messages=2)})
    page.goto("/")
    page.evaluate("window.same = true")
    button = page.get_by_role("button", name="Messages")
    button.focus()
    page.keyboard.press("Enter")
    names = page.locator("tbody th a")
    expect(names).to_have_text(["b", "a"])
    heading = page.get_by_role("columnheader", name="Messages")
    expect(heading).to_have_attribute("aria-sort", "descending")
    expect(button).to_be_focused()
    assert button.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"

    stage.snapshot = snapshot(
        {"a": totals(messages=3), "b": totals(messages=2), "c": totals()}
    )
    expect(names).to_have_text(["a", "b", "c"])
    page.keyboard.press("Enter")
    expect(names).to_have_text(["c", "b", "a"])
    page.get_by_label("Name or id").fill("B")
    expect(names).to_have_text(["b"])
    assert page.url.endswith("/?find=B&sort=-messages")
    assert page.evaluate("window.same")


def test_one_click_leads_from_the_fleet_to_the_lost_message(
    page: Page, complaints: list[str], busy: Any
) -> None:
    """Its id can be copied completely."""
    page.goto("/")
    page.get_by_role("rowheader").get_by_role("link", name="Town").click()
    incident = page.locator("article").first
    for summary in page.locator("article summary").all():
        summary.click()
    expect(incident).to_contain_text("bob since 2026-08-09 11:47:40 UTC")
    for article, text in ((page.locator("article").nth(2), ESCAPED), (incident, HASH)):
        article.get_by_role("button", name="Copy message id").click()
        copied = article.get_by_role("button", name="Copied message id")
        expect(copied).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == text
    page.locator("figure summary").first.click()
    incident.locator("code.whole").first.click()
    assert page.evaluate("String(getSelection())") == HASH
    busy.snapshot.channels["/waku/1"].gaps_tap_gap = 4_321
    expect(page.get_by_text("4,321", exact=True)).to_be_visible()
    assert page.locator("svg").count() == 5
    expect(page.locator("figure").first.get_by_role("table")).to_be_visible()
    assert page.evaluate("String(getSelection())") == HASH
    assert complaints == []


@pytest.mark.parametrize("width", [390, 1280])
def test_red_banner_leads_to_who_lacks_what_and_to_the_runbook(
    page: Page, complaints: list[str], busy: Any, width: int
) -> None:
    """In one click and in two, on a phone too; without scrolling past charts."""
    page.set_viewport_size({"width": width, "height": 844})
    channels = {"/waku/1": busy.snapshot.channels["/waku/1"]}
    busy.snapshot = replace(busy.snapshot, channels=channels)
    page.goto("/")
    page.locator(".sentence").get_by_role("link", name="Town").click()
    lack = page.locator(".lacks li", has_text="participant-003 lacks 1 message since")
    expect(lack).to_be_in_viewport()
    expect(lack).to_contain_text("11:48:00")
    row = page.locator(".participants tr", has_text="participant-003")
    expect(row).to_contain_text("28")
    lack.get_by_role("link", name="What to do").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("SdsDeliveryBudgetBurn")
    page.go_back()
    lack.get_by_role("link", name="participant-003 lacks").first.click()
    expect(page.locator("article")).to_have_count(1)
    expect(page.get_by_label("Not delivered to")).to_have_value("participant-003")
    assert complaints == []


def test_opened_message_stays_open_while_others_come(page: Page, busy: Any) -> None:
    """Updates of the page touch only what differs."""
    page.goto("/incidents")
    first = page.locator("article").first
    first.locator("summary").click()
    expect(first.get_by_text("Waku hash", exact=True)).to_be_visible()
    busy.incidents.insert(0, lost("/waku/1", message_id="m3"))
    expect(page.locator("article")).to_have_count(4)
    assert page.locator("article details[open]").count() == 1
    expect(page.locator("article").nth(1).get_by_text(HASH).last).to_be_visible()


def test_unreachable_monitor_is_reported_until_it_returns(
    browser: Browser, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Meanwhile the page keeps its last figures."""
    stage.snapshot = snapshot({"a": totals(messages=7)})
    server = WebServer(stage.app, port=0)
    server.start()
    page = browser.new_page()
    try:
        page.goto(f"{server.url}/channel?id=a")
        port = int(server.url.rpartition(":")[2])
        server.stop()
        silence = page.locator(".silence")
        # One request may still be waiting for the server that has just gone.
        expect(silence).to_have_text(
            re.compile(r"^No answer from the monitor since \d\d:\d\d:\d\d$"),
            timeout=60_000,
        )
        known, stage.snapshot = stage.snapshot, Snapshot()
        server = WebServer(stage.app, port=port)
        server.start()
        sentence = page.locator(".sentence")
        expect(sentence).to_have_text("Starting Spark, about 10 s", timeout=60_000)
        expect(silence).to_be_hidden()
        messages = page.get_by_text("Messages", exact=True).first.locator("..")
        expect(messages).to_contain_text("7")
        stage.snapshot = replace(known, channels={"a": totals(messages=8)})
        expect(messages).to_contain_text("8")
        expect(sentence).to_have_text("Everything is fine")
    finally:
        page.close()
        server.stop()


def test_error_of_the_monitor_is_distinguished_from_no_answer(
    page: Page, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """The page keeps its figures, and reloads after an upgrade."""
    stage.snapshot = snapshot({"a": totals()})
    page.goto("/")
    page.evaluate("window.same = true")
    stage.snapshot = None
    expect(page.locator(".silence")).to_have_text(
        re.compile(r"^The monitor answers with an error \(500\) since \d\d:\d\d:\d\d$")
    )
    expect(page.locator("tbody th a")).to_have_text(["a"])
    stage.snapshot = Snapshot()
    expect(page.locator(".sentence")).to_contain_text("Starting")
    assert page.evaluate("window.same")
    stage.snapshot = snapshot({"a": totals()}, version="1.2.4")
    expect(page.locator("footer")).to_contain_text("Version 1.2.4")
    assert not page.evaluate("window.same")


def test_incidents_are_filtered_without_loading_the_page_again(
    page: Page, complaints: list[str], busy: Any
) -> None:
    """A choice in the form takes effect at once."""
    page.goto("/incidents")
    page.evaluate("window.same = true")
    busy.incidents = [lost("/waku/1", message_id="m")]
    page.get_by_label("State").select_option("only unresolved ones")
    expect(page.locator("article")).to_have_count(1)
    assert busy.asked[-1].standing
    assert page.evaluate("window.same")
    assert complaints == []


def test_pages_need_no_script(browser: Browser, served: str, busy: Any) -> None:
    """Sorting, filters and figures work, and the page suggests a reload."""
    context = browser.new_context(java_script_enabled=False, base_url=served)
    tab = context.new_page()
    tab.goto("/")
    assert tab.locator("meta[http-equiv=refresh]").count() == 1
    tab.get_by_role("button", name="Lost").click()
    expect(tab.locator("tbody th a").first).to_have_text("Town")
    tab.get_by_label("Name or id").fill("town")
    tab.keyboard.press("Enter")
    expect(tab.locator("tbody tr")).to_have_count(1)
    assert tab.url.endswith("/?find=town&sort=gaps_lost")
    tab.goto("/incidents")
    tab.get_by_role("button", name="Show").click()
    expect(tab.locator("article")).to_have_count(3)
    context.close()
