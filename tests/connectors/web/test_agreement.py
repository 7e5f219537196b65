"""Numbers on one screen that a person reads together say the same.

Each has one verb and one window, and the window is written beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from sds_core.observer.growth import Recorded, counted_values
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.sds.evidence import Evidence
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.participant_figures import ParticipantFigures
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.web.reading import Tags, packed, text_of

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

HOUR_MS = 3_600_000


def figure_tags(html: str, tag: str, name: str = "grave") -> list[dict[str, Any]]:
    """Return the attributes of the cells of a kind that have a class."""
    return [
        attributes
        for found, attributes in Tags(html).found
        if found == tag and name in str(attributes.get("class")).split()
    ]


def undelivered(message_id: str, found_ms: int, **lacking: int) -> ChannelIncident:
    """A message that did not reach some participants."""
    incident = Incident(
        IncidentKind.UNDELIVERED,
        message_id,
        "alice",
        min(lacking.values()),
        found_ms,
        lacking=lacking,
    )
    return ChannelIncident("c", incident, tap_hole=False)


@pytest.fixture
def failing(stage: Any, snapshot: MakeSnapshot, totals: MakeTotals) -> Any:
    """Of six messages that did not reach somebody, two count in the window."""
    now_ms = snapshot().clock_ms
    old_ms, new_ms = now_ms - 1_500_000, now_ms - 400_000
    lately = [(new_ms, now_ms, 1)]
    stage.snapshot = snapshot(
        {
            "c": totals(
                Verdict.FAILING,
                verdict_reason="undelivered",
                verdict_since_ms=now_ms - 60_000,
                first_event_ms=now_ms - 5_000_000,
                deliveries_first_pass=991,
                deliveries_lost=9,
                evidence=Evidence(
                    *(20, 100, False, True, [], [*lately, (new_ms, now_ms, 2)]),
                    *([], [], [], []),
                    lacking=[("p2", lately), ("p1", [(new_ms, now_ms, 2)])],
                ),
                participant_table=packed(
                    ParticipantFigures("p0", now_ms, 9, old_ms, 4, 96, 4),
                    ParticipantFigures("p1", now_ms, 3, new_ms, 3, 97, 3),
                    ParticipantFigures("p2", now_ms, 2, old_ms, 2, 98, 2),
                ),
            )
        }
    )
    stage.incidents = [
        *(undelivered(f"o{n}", old_ms, p0=old_ms, p2=old_ms) for n in range(1)),
        *(undelivered(f"p{n}", old_ms, p0=old_ms) for n in range(3)),
        undelivered("n0", now_ms, p1=new_ms, p2=new_ms),
        *(undelivered(f"n{n}", now_ms, p1=new_ms) for n in (1, 2)),
    ]
    return stage


def test_sentence_of_the_verdict_has_its_window_beside_the_count(
    failing: Any, client: httpx.Client
) -> None:
    """The list below it has everything; the worst in the window is named first."""
    for path in ("/", "/channel?id=c"):
        text = text_of(client, path)
        assert (
            "2 messages did not reach p1, and 1 did not reach 1 other participant in "
            "the last 10 min (3 of 100 deliveries; limit 1 %) failing since"
        ) in text
    assert "4 messages did not reach p0 since 11:38:10" in text


def test_list_and_table_of_participants_count_with_the_same_word(
    failing: Any, client: httpx.Client
) -> None:
    """What a participant lacks and what did not reach it are two columns."""
    html = client.get("/channel?id=c").text
    text = " ".join(Tags(html).text.split())
    assert "lacks" not in text.partition("What the columns mean")[0]
    assert "Lacks now Since Undelivered Delivered in all" in text
    assert "p0 0 s ago 9 11:38:10 4 96.0 %" in text
    assert "4 messages did not reach p0 since" in text


def test_groups_that_share_messages_say_why_they_add_up_to_more(
    failing: Any, client: httpx.Client
) -> None:
    """Seven messages stand above groups of four, three and two."""
    shared = (
        "The number in the heading counts each message once, even if several lines "
        "include the message."
    )
    for path in ("/channel?id=c", "/incidents"):
        text = text_of(client, path)
        assert "7 messages" in text
        assert shared in text
    failing.incidents = failing.incidents[1:4]
    assert shared not in text_of(client, "/channel?id=c")


def test_objective_that_is_met_beside_a_failing_verdict_has_its_own_window(
    failing: Any, client: httpx.Client
) -> None:
    """The verdict covers ten minutes, the objective everything."""
    text = text_of(client, "/channel?id=c")
    assert "Delivered 99 % 99.10 % met" in text
    assert (
        "SLOs Figures since the first record at 2026-08-09 10:39:50 UTC. The verdict "
        "covers only the last 10 min, so a channel whose verdict is failing may "
        "still meet its SLOs."
    ) in text


def test_loss_that_was_retracted_is_no_loss_on_the_page(
    stage: Any, client: httpx.Client, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Delivered 100 % stands beside Not delivered 0, and nothing is red."""
    figures = totals(
        first_event_ms=snapshot().clock_ms - 60_000,
        deliveries_first_pass=98,
        deliveries_lost=2,
        deliveries_retracted=2,
        gaps_opened=3,
        gaps_lost=3,
        gaps_retracted=3,
    )
    stage.snapshot = snapshot({"c": figures})
    text = text_of(client, "/channel?id=c")
    assert "Delivered 100 % First pass 98 Recovered 0 Not delivered 0 Came later 2" in (
        text
    )
    assert "Lost to everybody 0" in text
    for path, tag in (("/", "td"), ("/?window=all", "td"), ("/channel?id=c", "dd")):
        cells = figure_tags(client.get(path).text, tag)
        assert cells
        assert all("nil" in cell["class"].split() for cell in cells)


def test_loss_of_the_last_hour_leaves_out_what_came_in_it(
    stage: Any, client: httpx.Client, snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """A loss from before the hour that came in it does not make the count negative."""
    now_ms = snapshot().clock_ms
    before = totals(first_event_ms=1, deliveries_lost=5, gaps_lost=4)
    now = totals(
        first_event_ms=1,
        deliveries_lost=8,
        deliveries_retracted=1,
        gaps_lost=5,
        gaps_retracted=3,
    )
    stage.snapshot = snapshot({"c": now})
    values = counted_values(CHANNEL_FIGURES, before)
    stage.recent = {"c": [Recorded(now_ms - 2 * HOUR_MS, values)]}
    html = client.get("/").text
    shown = " ".join(Tags(html).text.split())
    # Delivered, not delivered, open now, lost to everybody.
    assert "33.3 % 2 0 0" in shown


@pytest.fixture
def one_tap(
    stage: Any, snapshot: MakeSnapshot, totals: MakeTotals
) -> Callable[..., None]:
    """A stage with channels that some taps show, and the gaps of the last hour."""
    now_ms = snapshot().clock_ms

    def show(
        first_seen_ms: int = 0, *, gaps: int = 35, others: tuple[str, ...] = ()
    ) -> None:
        before = totals(first_event_ms=1, messages=100, gaps_tap_gap=7)
        now = totals(
            first_event_ms=1,
            messages=538,
            gaps_tap_gap=7 + gaps,
            observers=["t", *others],
        )
        taps = {"t": TapTotals(now_ms, first_seen_ms=first_seen_ms)}
        taps |= {name: TapTotals(now_ms) for name in others}
        stage.snapshot = replace(snapshot({"c": now}), taps=taps)
        values = counted_values(CHANNEL_FIGURES, before)
        stage.recent = {"c": [Recorded(now_ms - 2 * HOUR_MS, values)]}

    return show


def test_tap_shows_how_many_messages_missed_it(
    one_tap: Callable[..., None], client: httpx.Client
) -> None:
    """It is not in green then, and the page says since when and what to do."""
    one_tap()
    html = client.get("/taps").text
    text = " ".join(Tags(html).text.split())
    assert "Missed messages since 11:00 UTC" in text
    assert "t Incomplete the tap's node does not receive all messages" in text
    assert "35 of 473 (7.3 %)" in text
    assert "Connect the node of the tap to more peers" in text
    rows = [a for tag, a in Tags(html).found if tag == "tr" and "data-key" in a]
    assert [row["data-verdict"] for row in rows] == ["degraded"]


def test_tap_that_misses_next_to_nothing_is_in_order(
    one_tap: Callable[..., None], client: httpx.Client
) -> None:
    """As deliveries to participants are; the count is there all the same."""
    one_tap(gaps=4)
    text = text_of(client, "/taps")
    assert "t OK no sequence gap in the last 10 min" in text
    assert "4 of 442 (0.9 %)" in text
    assert "more peers" not in text


def test_miss_rate_is_a_bound_if_other_taps_show_the_channel(
    one_tap: Callable[..., None], client: httpx.Client
) -> None:
    """What only another tap showed is not known to have missed this one."""
    one_tap(others=("u",))
    text = text_of(client, "/taps")
    assert text.count("at least 35 of 473 (7.3 %)") == 2


def test_tap_that_came_later_has_no_part_in_earlier_misses(
    one_tap: Callable[..., None], client: httpx.Client, snapshot: MakeSnapshot
) -> None:
    """Its rate is not known until its channels have an hour with it."""
    now_ms = snapshot().clock_ms
    one_tap(now_ms - 600_000, others=("u",))
    text = text_of(client, "/taps")
    assert text.count("at least 35 of 473") == 1
    assert "t OK no sequence gap in the last 10 min" in text
