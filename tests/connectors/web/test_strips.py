"""Which verdicts were shown when: strips, a sentence, a table, and the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from connectors.web.strips import LISTED_SPANS
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.shown_verdicts import NOT_WATCHED, WORST_FIRST, ShownVerdict
from sds_core.observer.snapshot import Snapshot
from tests.support.web.reading import text_of

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

NOW_MS = 1_786_276_990_123
"""2026-08-09 12:03:10 UTC."""
END_MS = 1_786_277_040_000
"""12:04: the end of the running minute."""
NAMESPACE = "{http://www.w3.org/2000/svg}"


def row(minutes_ago: int, verdict: str, reason: str = "") -> ShownVerdict:
    """A row from so many minutes before 12:04 on."""
    return ShownVerdict(END_MS - minutes_ago * MINUTE_MS, verdict, reason or verdict)


@pytest.fixture
def shown(stage: Any, snapshot: MakeSnapshot, totals: MakeTotals) -> Any:
    """A channel that was shown for two hours."""
    stage.snapshot = snapshot({"c": totals(first_event_ms=1), "new": totals()})
    stage.shown_until_ms = NOW_MS
    stage.shown = {
        "c": [
            row(120, "ok"),
            row(40, "failing", "lost"),
            row(28, "blind", "tap_hole"),
            row(25, "ok"),
            row(20, NOT_WATCHED, "stopped"),
            row(18, "ok"),
            row(1, "degraded", "recovering"),
        ]
    }
    return stage


def bars(html: str) -> list[tuple[str, str]]:
    """The bars of the first strip of a page: class and title."""
    begin = html.index('<svg class="strip"')
    text = html[begin : html.index("</svg>", begin) + len("</svg>")]
    return [
        (path.get("class", ""), path.findtext("title", ""))
        for path in ElementTree.fromstring(text)  # noqa: S314 - our own
    ]


@pytest.mark.usefixtures("shown")
def test_first_page_has_a_strip_of_the_last_hour(client: httpx.Client) -> None:
    """Each bar says its times, its verdict and its reason; none where none is known."""
    html = client.get("/").text
    assert bars(html) == [
        ("ok", "11:04 UTC to 11:24 UTC: OK, nothing amiss"),
        ("failing", "11:24 UTC to 11:36 UTC: Failing, messages were lost"),
        ("blind", "11:36 UTC to 11:39 UTC: Blind, the taps were interrupted"),
        ("ok", "11:39 UTC to 11:44 UTC: OK, nothing amiss"),
        ("not_watched", "11:44 UTC to 11:46 UTC: Not watched, the monitor did not run"),
        ("ok", "11:46 UTC to 12:03 UTC: OK, nothing amiss"),
        (
            "degraded",
            "12:03 UTC to 12:04 UTC: Degraded, messages were missing",
        ),
    ]
    label = (
        'aria-label="11:04 UTC to 12:04 UTC: Failing 12 min, Blind 3 min, '
        'Degraded 1 min, Not watched 2 min, OK 42 min"'
    )
    assert label in html
    assert 'aria-label="11:04 UTC to 12:04 UTC: nothing is known"' in html


@pytest.mark.usefixtures("shown")
def test_bars_differ_without_their_colours(client: httpx.Client) -> None:
    """In height or place."""
    html = client.get("/").text
    begin = html.index('<svg class="strip"')
    root = ElementTree.fromstring(  # noqa: S314 - our own
        html[begin : html.index("</svg>", begin) + len("</svg>")]
    )
    shapes = {
        path.get("class"): "".join(
            f"{move.split()[1].split('h')[0]} {move.split('v')[1].split('h')[0]},"
            for move in path.get("d", "").split("M")[1:]
        )
        for path in root
    }
    assert len(set(shapes.values())) == len(shapes) == 5


@pytest.mark.usefixtures("shown")
def test_page_of_a_channel_says_how_long_it_was_fine(client: httpx.Client) -> None:
    """From when on it is known; with all changes as a table."""
    text = text_of(client, "/channel?id=c")
    assert "Verdicts since 10:04 UTC" in text
    assert (
        "OK or quiet 85.0 % since 10:04 UTC; failing 12 min, blind 3 min, "
        "degraded 1 min, not watched 2 min."
    ) in text
    assert "11:24 UTC 11:36 UTC Failing messages were lost" in text
    assert "Verdicts since" not in text_of(client, "/channel?id=new")


def test_whole_day_has_a_bar_for_15_minutes(client: httpx.Client, shown: Any) -> None:
    """Of each the worst verdict, with all that was shown in it."""
    # Each day begins with a row.
    shown.shown["c"][:0] = [row(2_000, "ok"), row(12 * 60 + 4, "ok")]
    text = text_of(client, "/channel?id=c")
    assert "OK or quiet 98.7 % of the last 24 h; failing 12 min, blind 3 min," in text
    found = bars(client.get("/channel?id=c").text)
    assert [verdict for verdict, _ in found] == [
        "ok",
        "failing",
        "failing",
        NOT_WATCHED,
        "degraded",
    ]
    assert (
        "failing",
        "11:15 UTC to 11:30 UTC: OK, nothing amiss 9 min; "
        "Failing, messages were lost 6 min",
    ) in found
    assert found[0][1].startswith("2026-08-08 12:04:00 UTC to 11:15 UTC: OK")


def test_table_is_not_longer_than_a_page_can_update(
    client: httpx.Client, shown: Any
) -> None:
    """The JSON has the rest."""
    shown.shown["c"] = [
        row(ago, "ok" if ago % 2 else "failing") for ago in range(300, 0, -1)
    ]
    html = client.get("/channel?id=c").text
    section = html[html.index('id="verdicts"') : html.index('id="participants"')]
    assert section.count("<tr data-verdict") == LISTED_SPANS
    assert "The table omits 200 earlier rows" in text_of(client, "/channel?id=c")


@pytest.mark.usefixtures("shown")
def test_api_has_the_spans(client: httpx.Client) -> None:
    """Of the last 24 hours, in pages, with the minutes of each verdict."""
    found = client.get("/api/v1/verdicts?channel=c&limit=2").json()
    assert found["to"] == END_MS
    assert found["from"] == END_MS - 24 * 60 * MINUTE_MS
    assert found["minutes"] == dict.fromkeys(WORST_FIRST, 0) | {
        "ok": 102,
        "failing": 12,
        "blind": 3,
        NOT_WATCHED: 2,
        "degraded": 1,
    }
    assert found["verdicts"][1] == {
        "from": END_MS - 40 * MINUTE_MS,
        "to": END_MS - 28 * MINUTE_MS,
        "verdict": "failing",
        "reason": "lost",
    }
    rest = client.get(
        f"/api/v1/verdicts?channel=c&limit=9&after={found['next']}"
    ).json()
    assert [one["verdict"] for one in rest["verdicts"]] == [
        "blind",
        "ok",
        NOT_WATCHED,
        "ok",
        "degraded",
    ]
    assert rest["next"] is None


@pytest.mark.usefixtures("shown")
def test_api_cuts_spans_at_the_requested_times(client: httpx.Client) -> None:
    """Rounded to minutes; what comes after now is not known."""
    begin_ms = END_MS - 30 * MINUTE_MS + 5
    found = client.get(
        f"/api/v1/verdicts?channel=c&from={begin_ms}&to={begin_ms + 2 * MINUTE_MS}"
    ).json()
    assert [(one["to"] - one["from"]) // MINUTE_MS for one in found["verdicts"]] == [
        2,
        1,
    ]
    later = client.get(f"/api/v1/verdicts?channel=c&to={END_MS + 10**9}").json()
    assert later["to"] == END_MS


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("channel=nobody", 404),
        ("", 404),
        ("channel=c&from=yesterday", 400),
        ("channel=c&to=-1", 400),
        ("channel=c&after=x", 400),
    ],
)
@pytest.mark.usefixtures("shown")
def test_api_refuses_in_one_line(client: httpx.Client, query: str, status: int) -> None:
    """With what is allowed."""
    answer = client.get(f"/api/v1/verdicts?{query}")
    assert answer.status_code == status
    assert "\n" not in answer.json()["error"]


@pytest.mark.usefixtures("shown")
def test_every_kind_of_view_has_the_same_address(client: httpx.Client) -> None:
    """Channels too; a kind that does not exist has none."""
    one = client.get(f"/api/v1/views/{CHANNELS.prefix}/verdicts?id=c").json()
    other = client.get("/api/v1/verdicts?channel=c").json()
    assert one.pop("id") == other.pop("channel") == "c"
    assert one == other
    assert client.get("/api/v1/views/nothing/verdicts?id=c").status_code == 404


def test_history_that_is_missing_is_an_error(client: httpx.Client, shown: Any) -> None:
    """An empty answer would be wrong."""
    shown.has_history = False
    assert client.get("/api/v1/verdicts?channel=c&from=0").status_code == 500


def test_before_anything_was_shown_nothing_is_known(
    client: httpx.Client, stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """There are no strips yet."""
    stage.snapshot = snapshot({"c": totals()})
    assert "strip" not in client.get("/").text
    assert client.get("/api/v1/verdicts?channel=c").json()["verdicts"] == []
