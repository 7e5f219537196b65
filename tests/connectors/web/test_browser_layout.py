"""The views in a real browser: accessible, offline, on a phone, in the dark."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from connectors.history.schema import NumberedMinute, minute_row
from sds_core.observer.histogram import Histogram
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from tests.support.web.busy import HOSTILE

pytestmark = pytest.mark.browser

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

VIEWS = {
    "fleet": "/",
    "channel": "/channel?id=%2Fwaku%2F1",
    "incidents": "/incidents",
    "planning": "/planning",
    "planning of one": "/planning?channel=%2Fwaku%2F1",
    "taps": "/taps",
    "monitor": "/monitor",
    "runbooks": "/runbooks",
    "runbook": "/runbooks/SdsLoss",
    "problem": "/channel?id=nobody",
}


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
    assert "Missing sequence numbers" in named


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
    expect(gaps).to_contain_text("No data exists for this period.")
    expect(gaps.locator("svg")).to_have_count(0)
