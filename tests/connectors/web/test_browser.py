"""The views in a real browser: choices, links, by keyboard, without a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from sds_core.observer.growth import Recorded, counted_values
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from tests.support.snapshots import with_channels
from tests.support.web.busy import ESCAPED
from tests.support.web.reading import HASH, lost

pytestmark = pytest.mark.browser

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]


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
    stage.snapshot.views["sds"].totals["a"].messages = 1_043
    expect(messages).to_have_text("1,043")
    expect(page.locator(".bars")).to_have_count(0)
    page.get_by_role("link", name="Last hour").click()
    expect(messages).to_have_text("43")
    assert page.url.endswith("/?window=hour&find=a&sort=messages")
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
    busy.snapshot.views["sds"].totals["/waku/1"].gaps_tap_gap = 4_321
    expect(page.get_by_text("4,321", exact=True)).to_be_visible()
    # The charts, and the strip of verdicts.
    assert page.locator("svg").count() == 6
    expect(page.locator("figure").first.get_by_role("table")).to_be_visible()
    assert page.evaluate("String(getSelection())") == HASH
    assert complaints == []


@pytest.mark.parametrize("width", [390, 1280])
def test_red_banner_leads_to_who_lacks_what_and_to_the_runbook(
    page: Page, complaints: list[str], busy: Any, width: int
) -> None:
    """In one click and in two, on a phone too; without scrolling past charts."""
    page.set_viewport_size({"width": width, "height": 844})
    channels = {"/waku/1": busy.snapshot.views["sds"].totals["/waku/1"]}
    busy.snapshot = with_channels(busy.snapshot, totals=channels)
    page.goto("/")
    page.locator(".sentence").get_by_role("link", name="Town").click()
    lack = page.locator(
        ".lacks li", has_text="28 messages did not reach participant-003"
    )
    expect(lack).to_be_in_viewport()
    expect(lack).to_contain_text("11:48:00")
    row = page.locator(".participants tr", has_text="participant-003")
    expect(row).to_contain_text("28")
    lack.get_by_role("link", name="What to do").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("SdsDeliveryBudgetBurn")
    page.go_back()
    lack.get_by_role("link", name="28 messages did not reach").first.click()
    expect(page.locator("article")).to_have_count(1)
    expect(page.get_by_label("Not delivered to")).to_have_value("participant-003")
    assert complaints == []


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
