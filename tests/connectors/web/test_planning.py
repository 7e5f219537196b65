"""Page and API of forecasts, and their metrics."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

from connectors.web.planning_api import DEFAULT_DAYS
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.planning.errors import ModelMissing
from sds_core.planning.hours import DAY_MS, HOUR_MS, MINUTE_MS
from sds_core.planning.plan import Plan
from tests.support.planning.made_plan import BEGIN_MS, DAYS, plan
from tests.support.snapshots import with_others
from tests.support.web.busy import HOSTILE

MakeSnapshot = Callable[..., Snapshot]


@pytest.fixture
def planned(stage: Any, snapshot: MakeSnapshot) -> Any:
    """A stage with the forecasts of two of three channels, one with a label."""
    stage.snapshot = snapshot({n: ChannelTotals() for n in ("town", "village", "new")})
    stage.plans = {"sds": plan(["town", "village"], ["new"])}
    return stage


@pytest.mark.usefixtures("planned")
def test_page_has_limits_channels_and_reasons(client: httpx.Client) -> None:
    """The limit that is reached first is named first."""
    text = client.get("/planning").text
    assert "The monitor computed the forecasts at 2026-09-09 00:10:00 UTC" in text
    assert "The forecasts of 2 channels use 29 days of history" in text
    assert "Reached: message size of town." in text
    assert "3 whole days of history, at least 14 are needed" in text
    assert "All channels with a forecast" in text
    assert text.index("reached</td>") < text.index("2026-09-12 00:00</td>")
    assert "The page omits 2 further forecasts" in text


@pytest.mark.usefixtures("planned")
def test_page_draws_the_channel_that_is_chosen(client: httpx.Client) -> None:
    """With each limit; another name is refused in one line."""
    text = client.get("/planning?channel=village").text
    assert "Channel village" in text
    assert 'data-key="filter_ids"' in text
    assert "Limit 154 kB" in text
    answer = client.get("/planning?channel=elsewhere")
    assert answer.status_code == 404


@pytest.mark.usefixtures("busy")
def test_hostile_names_are_text(client: httpx.Client) -> None:
    """In tables, headings and charts."""
    text = client.get("/planning").text
    assert "<img" not in text
    assert "\u202e" not in text
    assert "&lt;img src=x" in text


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, "Only the command run computes forecasts."),
        (
            {"sds": Plan()},
            "The first forecasts appear a few minutes after startup.",
        ),
        (
            {"sds": Plan(problem=str(ModelMissing()))},
            "Plans need statsmodels: pip install &#39;sds-monitor[plan]&#39;.",
        ),
    ],
)
def test_page_without_forecasts_says_what_to_do(
    planned: Any, client: httpx.Client, found: dict[str, Plan], expected: str
) -> None:
    """Page and API answer, and the metrics have no series of forecasts."""
    planned.plans = found
    assert expected in client.get("/planning").text
    assert client.get("/api/v1/planning").json()["channels"] == []
    assert "sds_plan_" not in client.get("/metrics").text


def test_older_forecasts_stay_beside_a_problem(
    planned: Any, client: httpx.Client
) -> None:
    """Both are shown."""
    old = planned.plans["sds"]
    planned.plans = {"sds": msgspec.structs.replace(old, problem="it failed")}
    text = client.get("/planning").text
    assert "It failed." in text
    assert "The forecasts of 2 channels use" in text


@pytest.mark.usefixtures("planned")
def test_api_has_weeks_of_all_and_days_of_one(client: httpx.Client) -> None:
    """Times stand there in both forms."""
    document = client.get("/api/v1/planning").json()
    assert document["computed"] == BEGIN_MS + 600_000
    assert document["computed_utc"] == "2026-09-09T00:10:00.000Z"
    assert (document["days"], document["interval"]) == (DAYS, 80)
    town, village = document["channels"]
    assert (town["id"], village["id"]) == ("town", "village")
    assert town["figures"]["messages"] == {
        "past": 4_000,
        "week": {"low": 3_880, "mid": 4_120, "high": 4_320},
    }
    limits = {one["figure"]: one for one in town["limits"]}
    assert limits["message_bytes"]["headroom"] == 0
    assert limits["filter_ids"]["reached_earliest_utc"] == "2026-09-12T00:00:00.000Z"
    assert document["without_forecast"][0]["id"] == "new"
    one = client.get("/api/v1/planning?channel=village").json()["channels"]
    assert [len(each["figures"]["bytes"]["days"]) for each in one] == [DAYS]
    assert client.get("/api/v1/planning?channel=new").status_code == 404


def test_page_of_hours_reads_no_earlier_hours(
    stage: Any, client: httpx.Client, snapshot: MakeSnapshot
) -> None:
    """It begins with the hour of the last entry, which may have grown since then."""
    stage.snapshot = snapshot({"town": ChannelTotals()})
    clock_ms = stage.snapshot.clock_ms
    begin_ms = clock_ms // HOUR_MS * HOUR_MS - 9 * HOUR_MS
    stage.minutes = [
        {"minute": begin_ms + n * HOUR_MS + MINUTE_MS, "messages": n} for n in range(9)
    ]
    url = "/api/v1/views/sds/hours"
    given: dict[str, str | int] = {"id": "town", "limit": 4}
    page = client.get(url, params=given).json()
    assert [one["messages"] for one in page["hours"]] == [0, 1, 2, 3]
    stage.minutes[4:4] = [{"minute": begin_ms + 4 * HOUR_MS - 1, "messages": 4}]
    page = client.get(url, params=given | {"after": page["next"]}).json()
    assert [one["messages"] for one in page["hours"]] == [4, 4, 5, 6]
    assert stage.hours_asked == [
        clock_ms + 1 - DEFAULT_DAYS * DAY_MS,
        begin_ms + 3 * HOUR_MS,
    ]


def test_every_kind_of_view_has_page_and_api(
    planned: Any, client: httpx.Client
) -> None:
    """Under its prefix; an unknown kind has none."""
    groups = Views(kinds_of(PROTOCOLS).of("mvds"))
    planned.snapshot = with_others(planned.snapshot, {"mvds": groups})
    assert "Planning: groups" in client.get("/views/mvds/planning").text
    assert client.get("/api/v1/views/mvds/planning").json()["groups"] == []
    assert client.get("/api/v1/views/sds/planning").json()["channels"]
    assert client.get("/views/other/planning").status_code == 404


def test_metrics_are_those_of_labelled_channels(
    planned: Any, client: httpx.Client, snapshot: MakeSnapshot
) -> None:
    """So their number is bounded as that of all series of a channel."""
    text = client.get("/metrics").text
    assert 'sds_plan_day_messages{bound="mid",channel="town"} 4120.0' in text
    earliest = '^sds_plan_limit_earliest_timestamp_seconds{channel="town",limit='
    assert not re.findall(f'{earliest}"epoch_messages"', text, re.MULTILINE)
    (line,) = re.findall(f'{earliest}"message_bytes"}} (.*)$', text, re.MULTILINE)
    assert float(line) == BEGIN_MS / 1000
    ratio = 'sds_plan_limit_headroom_ratio{channel="town",limit="message_bytes"} 0.0'
    assert ratio in text
    assert 'sds_plan_channels{forecast="not_computed"} 2.0' in text
    labelled = snapshot({"town": ChannelTotals(), HOSTILE: ChannelTotals()})
    planned.snapshot = labelled
    assert 'channel="village",limit' not in client.get("/metrics").text
