"""Traces on the status page: their links, and the budget that they have."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from connectors.web.pages.trace import MOST_AT_ONCE, POLL_S
from connectors.web.refusals import NoTrace, TraceFailed
from connectors.web.sources import TraceQuestion
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.trace.trace import Trace
from tests.support.trace.hostile import hostile_trace
from tests.support.web.busy import HOSTILE

SINCE_MS = 1_786_276_000_000
TRACE = "/trace?channel=town&message=m1"


@pytest.fixture
def asked(stage: Any, snapshot: Any) -> list[TraceQuestion]:
    """What traces were asked of a stage with one incident."""
    questions: list[TraceQuestion] = []

    def made(question: TraceQuestion) -> Trace:
        questions.append(question)
        return hostile_trace()

    stage.trace = made
    stage.snapshot = snapshot({"town": ChannelTotals()})
    incident = Incident(IncidentKind.LOST, HOSTILE, "alice", SINCE_MS, SINCE_MS)
    stage.incidents = [ChannelIncident("town", incident, tap_hole=False)]
    return questions


@pytest.mark.browser
def test_incident_leads_to_its_trace(
    page: Page, asked: list[TraceQuestion], complaints: list[str]
) -> None:
    """The picture zooms under the policy of the page; the trace is made once."""
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/incidents")
    page.locator(".incident summary").click()
    page.get_by_role("link", name="Trace of").click()
    expect(page.get_by_role("heading", name="What happened")).to_be_visible()
    picture = page.locator(".lanes > svg")
    before = picture.bounding_box()
    page.locator(".zoomed label").nth(3).click()
    after = picture.bounding_box()
    assert before
    assert after
    assert after["width"] == pytest.approx(8 * before["width"])
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    (question,) = asked
    assert question[:4] == ("sds", "town", HOSTILE, SINCE_MS)
    assert complaints == []


@pytest.mark.usefixtures("asked")
def test_api_has_the_document_of_the_command(client: httpx.Client) -> None:
    """The page links to it."""
    document = client.get(f"/api/v1{TRACE}").json()
    assert document["message_id"] == hostile_trace().message_id
    assert "api/v1/trace?channel=town&amp;message=m1" in client.get(TRACE).text


@pytest.mark.parametrize(
    ("error", "status"), [(NoTrace("no record"), 404), (TraceFailed("late"), 503)]
)
@pytest.mark.usefixtures("asked")
def test_reason_without_a_trace_is_one_line(
    stage: Any, client: httpx.Client, error: Exception, status: int
) -> None:
    """On the page, and in the API."""

    def fail(question: TraceQuestion) -> Trace:
        raise error

    stage.trace = fail
    answer = client.get(f"/api/v1{TRACE}")
    assert (answer.status_code, answer.json()) == (status, {"error": str(error)})
    page = client.get(TRACE).text
    assert str(error).capitalize() in page
    # It would be traced again every two seconds.
    assert f'data-poll-s="{POLL_S}"' in page
    assert POLL_S > 3_600
    assert client.get("/trace?message=m1").status_code == 404
    assert client.get("/trace?channel=town").status_code == 400
    assert client.get("/views/none/trace?id=a&message=m").status_code == 404


@pytest.mark.usefixtures("asked")
def test_each_address_gets_one_trace_at_a_time(stage: Any) -> None:
    """And all together a few; the next one is refused, and later answered."""
    end, under_way = threading.Event(), threading.Semaphore(0)

    def slow(question: TraceQuestion) -> Trace:
        under_way.release()
        assert end.wait(60)
        return hostile_trace()

    stage.trace = slow
    app = stage.app

    async def get(address: int) -> httpx.Response:
        transport = httpx.ASGITransport(app, client=(f"10.0.0.{address}", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as one:
            return await one.get(TRACE)

    async def crowd() -> None:
        waiting = []
        for address in range(MOST_AT_ONCE):
            waiting.append(asyncio.create_task(get(address)))
            await asyncio.to_thread(under_way.acquire)
            refused = await get(address)
            assert refused.status_code == 429
            assert int(refused.headers["Retry-After"]) > 0
            assert "The monitor is making another trace" in refused.text
        assert (await get(99)).status_code == 429
        end.set()
        assert {(await one).status_code for one in waiting} == {200}
        assert (await get(99)).status_code == 200

    # Playwright leaves an event loop in the thread of the tests.
    with ThreadPoolExecutor() as threads:
        threads.submit(lambda: asyncio.run(crowd())).result()
