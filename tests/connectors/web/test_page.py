"""The status page, as HTML and in a real browser."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from connectors.web.page import SHOWN_CHANNELS
from connectors.web.server import WebServer
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.totals import ChannelTotals, Verdict

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

HOSTILE = "<script>alert(1)</script>"


class Tags(HTMLParser):
    """Collects tags with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember one tag."""
        self.found.append((tag, dict(attrs)))


def test_first_page_is_whole_without_script(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """The server writes verdict, figures and rows itself."""
    failing = totals(Verdict.FAILING, verdict_reason="lost", gaps_lost=4_321)
    stage.snapshot = snapshot({"chat": failing}, records_behind=98_765)
    html = client.get("/").text
    for text in (
        "1 of 1 channel failing: chat",
        "messages were lost",
        "4,321",
        "98,765",
    ):
        assert f">{text}<" in html


def test_channel_id_is_never_markup(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Text of strangers stays text in element, attribute, sentence and title."""
    ids = [HOSTILE, '" onmouseover="alert(1)', "</title><b>"]
    stage.snapshot = snapshot({channel: totals(Verdict.FAILING) for channel in ids})
    html = client.get("/").text
    tags = Tags(html).found
    assert [attrs.get("src") for tag, attrs in tags if tag == "script"] == [
        "static/status.js?v=1.2.3"
    ]
    assert not [tag for tag, attrs in tags if tag == "b" or "onmouseover" in attrs]
    shown = [attrs["data-channel"] for tag, attrs in tags if tag == "tr" and attrs]
    assert sorted(filter(None, shown)) == sorted(ids)


def test_page_may_load_nothing_from_elsewhere(client: httpx.Client) -> None:
    """All that the page refers to is its own, and the browser is told so."""
    answer = client.get("/")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for tag, attrs in Tags(answer.text).found:
        for name in ("src", "href"):
            target = attrs.get(name)
            if target:
                assert ":" not in target, tag
                assert client.get(target).status_code == 200, target


def test_page_shows_only_the_most_troubled_of_many(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Two thousand channels give a page of two hundred rows that says so."""
    channels = {f"c{n:04}": totals() for n in range(1_999)}
    stage.snapshot = snapshot(channels | {"z": totals(Verdict.BLIND)})
    html = client.get("/").text
    rows = [a for tag, a in Tags(html).found if tag == "tr" and a.get("data-channel")]
    assert len(rows) == SHOWN_CHANNELS
    assert rows[0]["data-channel"] == "z"
    assert "1,800 less troubled channels not shown here" in html


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium: the system's, or else Playwright's own."""
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
    """What the page writes to the console, and its errors."""
    return []


@pytest.fixture
def page(browser: Browser, complaints: list[str]) -> Iterator[Page]:
    """An empty tab at desktop width."""
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    yield tab
    tab.close()


def written(page: Page) -> list[list[str]]:
    """All that the script writes: text, and whether it is dimmed."""
    return page.evaluate(
        """() => [...document.querySelectorAll("[data-text]")].map(
            (element) => [element.textContent, element.classList.contains("nil")]
        )"""
    )


@pytest.mark.browser
def test_page_follows_the_snapshot(
    page: Page,
    complaints: list[str],
    served: str,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
) -> None:
    """Rows come, change, move and go while the page stands open, with no complaint."""
    stage.snapshot = snapshot({"a": totals(), HOSTILE: totals(Verdict.QUIET)})
    page.goto(served)
    names = page.locator("tbody th")
    expect(names).to_have_text([HOSTILE, "a"])

    worse = totals(Verdict.FAILING, verdict_reason="lost", gaps_lost=1)
    hostile = {"<img src=x onerror=alert(2)>": totals(Verdict.BLIND)}
    stage.snapshot = snapshot({"a": worse, "new": totals()} | hostile)

    expect(names).to_have_text(["a", "<img src=x onerror=alert(2)>", "new"])
    expect(page.locator("tbody tr").first).to_contain_text("messages were lost")
    expect(page.locator(".sentence")).to_contain_text("1 of 3 channels failing: a;")
    expect(page.locator("body")).to_have_attribute("data-level", "trouble")
    expect(page).to_have_title(
        "1 of 3 channels failing: a; 1 of 3 channels blind: "
        "<img src=x onerror=alert(2)> · sds-monitor"
    )
    link = page.get_by_role("link", name="<img src=x onerror=alert(2)>")
    target = link.evaluate("link => link.href")
    assert page.request.get(target).json()["verdict"] == "blind"
    assert complaints == []


@pytest.mark.browser
def test_live_page_reads_as_one_that_is_loaded_anew(
    page: Page, served: str, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Script and template write the same, down to what is dimmed."""
    page.goto(served)
    stage.snapshot = snapshot(
        {"a": totals(messages=3, gaps_opened=2), "b": totals(Verdict.BLIND)},
        records_behind=5,
    )
    expect(page.locator("tbody tr")).to_have_count(2)
    live = written(page)
    page.reload()
    assert written(page) == live


@pytest.mark.browser
def test_focus_stays_on_a_row_that_moves(
    page: Page, served: str, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Somebody who reads by keyboard is not thrown back to the top."""
    stage.snapshot = snapshot({"a": totals(), "b": totals(), "c": totals()})
    page.goto(served)
    page.get_by_role("link", name="c", exact=True).focus()
    stage.snapshot = snapshot(
        {"a": totals(), "b": totals(), "c": totals(Verdict.FAILING)}
    )
    expect(page.locator("tbody th")).to_have_text(["c", "a", "b"])
    expect(page.get_by_role("link", name="c", exact=True)).to_be_focused()


@pytest.mark.browser
def test_page_without_channels_fills_up(
    page: Page,
    complaints: list[str],
    served: str,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
) -> None:
    """A monitor that has seen nothing says so until it has."""
    page.goto(served)
    nothing = page.get_by_text("No channel has been seen yet.")
    expect(nothing).to_be_visible()
    stage.snapshot = snapshot({"a": totals()})
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(nothing).to_be_hidden()
    stage.snapshot = snapshot()
    expect(nothing).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(0)
    assert complaints == []


@pytest.mark.browser
def test_silent_monitor_is_said_and_its_return_noticed(
    page: Page, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """The page keeps what it knows, tells since when it hears nothing, and goes on."""
    stage.snapshot = snapshot({"a": totals()})
    server = WebServer(stage.app, port=0)
    server.start()
    try:
        page.goto(server.url)
        port = int(server.url.rpartition(":")[2])
        server.stop()
        silence = page.locator(".silence")
        # One request may still be waiting for the server that has just gone.
        expect(silence).to_have_text(
            re.compile(r"^No answer from the monitor since \d\d:\d\d:\d\d$"),
            timeout=15_000,
        )
        expect(page.locator("tbody tr")).to_have_count(1)
        server = WebServer(stage.app, port=port)
        server.start()
        expect(silence).to_be_hidden(timeout=15_000)
    finally:
        server.stop()


@pytest.mark.browser
def test_page_needs_no_script(
    browser: Browser,
    served: str,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
) -> None:
    """Without scripts the table is there, and the page asks to be loaded again."""
    stage.snapshot = snapshot({"a": totals()})
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(served)
    assert tab.locator("tbody th").all_text_contents() == ["a"]
    assert tab.locator("meta[http-equiv=refresh]").count() == 1
    context.close()


@pytest.mark.browser
def test_page_is_as_wide_as_a_phone(
    browser: Browser,
    served: str,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
) -> None:
    """Only the table scrolls sideways, by keyboard too, its channels staying put."""
    stage.snapshot = snapshot({"chat " * 50: totals(Verdict.FAILING)})
    tab = browser.new_page(viewport={"width": 390, "height": 844})
    tab.goto(served)
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    name = tab.locator("tbody th")
    before = name.bounding_box()
    tab.locator(".scroll").focus()
    tab.keyboard.press("End")
    tab.keyboard.press("ArrowRight")
    tab.locator(".scroll").evaluate("box => { box.scrollLeft = 500 }")
    assert name.bounding_box() == before
    tab.close()
