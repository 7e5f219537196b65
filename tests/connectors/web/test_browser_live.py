"""The views in a real browser: open pages follow the figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from connectors.web.server import WebServer
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import snapshot_of, with_channels
from tests.support.web.busy import HOSTILE
from tests.support.web.reading import HASH, lost

pytestmark = pytest.mark.browser

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]


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
    expect(page.locator("tbody tr").first).to_contain_text("messages were lost")
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
        known, stage.snapshot = stage.snapshot, snapshot_of()
        server = WebServer(stage.app, port=port)
        server.start()
        sentence = page.locator(".sentence")
        expect(sentence).to_have_text("Starting Spark, about 10 s", timeout=60_000)
        expect(silence).to_be_hidden()
        messages = page.get_by_text("Messages", exact=True).first.locator("..")
        expect(messages).to_contain_text("7")
        stage.snapshot = with_channels(known, totals={"a": totals(messages=8)})
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
    stage.snapshot = snapshot_of()
    expect(page.locator(".sentence")).to_contain_text("Starting")
    assert page.evaluate("window.same")
    stage.snapshot = snapshot({"a": totals()}, version="1.2.4")
    expect(page.locator("footer")).to_contain_text("Version 1.2.4")
    assert not page.evaluate("window.same")
