"""What the status page says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from connectors.web.status import (
    COLUMNS,
    Level,
    by_trouble,
    channel_text,
    groups,
    snapshot_text,
    summarise,
)
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.totals import ChannelTotals, Histogram, Verdict

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]


def test_nothing_amiss_is_said_in_three_words(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Quiet and new channels are no trouble."""
    channels = {v.value: totals(v) for v in (Verdict.OK, Verdict.QUIET)}
    summary = summarise(snapshot(channels))
    assert (summary.level, summary.sentence) == (Level.FINE, "Everything is fine")


@pytest.mark.parametrize(
    ("job", "level", "sentence"),
    [
        (
            {"error": "no broker\n  at kafka:9092", "running": False},
            Level.TROUBLE,
            "Query stopped: no broker at kafka:9092",
        ),
        ({"running": False}, Level.TROUBLE, "Query stopped"),
        (
            {"event_time_lag_seconds": None},
            Level.STARTING,
            "Starting: waiting for the first batch",
        ),
        ({"event_time_lag_seconds": 60}, Level.FINE, "Everything is fine"),
        ({"event_time_lag_seconds": 1_239.9}, Level.TROUBLE, "Behind by over 1,230 s"),
    ],
)
def test_state_of_the_job_is_said_first(
    snapshot: MakeSnapshot, job: dict[str, object], level: Level, sentence: str
) -> None:
    """Figures of a job that does not run well are told as such."""
    summary = summarise(snapshot(**job))
    assert (summary.level, summary.sentence) == (level, sentence)


def test_checkpoint_that_is_not_read_yet_is_a_start(snapshot: MakeSnapshot) -> None:
    """An empty fleet before priming is not a fine fleet."""
    summary = summarise(replace(snapshot(), primed=False))
    assert summary.level is Level.STARTING
    assert summary.sentence == "Starting: reading the checkpoint"


def test_all_troubles_are_named_in_one_sentence(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Failing, blind and behind stand side by side, names up to three."""
    channels = {f"f{n}": totals(Verdict.FAILING) for n in range(5)}
    channels |= {"b": totals(Verdict.BLIND), "o": totals(), "d": totals("degraded")}
    summary = summarise(snapshot(channels, event_time_lag_seconds=75))
    assert summary.level is Level.TROUBLE
    assert summary.sentence == (
        "5 of 8 channels failing: f0, f1, f2, 2 more; "
        "1 of 8 channels blind: b; behind by over 70 s"
    )


def test_degraded_channel_is_a_warning(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """What may still heal is told apart from what is broken."""
    summary = summarise(snapshot({"chat": totals(Verdict.DEGRADED)}))
    assert summary.level is Level.WARNING
    assert summary.sentence == "Nothing is failing; 1 of 1 channel degraded: chat"


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("lag", [0, 61])
@pytest.mark.parametrize("running", [True, False])
def test_sentence_agrees_with_the_one_number(
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    verdict: Verdict,
    lag: int,
    running: bool,
) -> None:
    """The page is never calmer than `sds_monitor_ok`, nor more alarmed."""
    shown = snapshot(
        {"chat": totals(verdict)}, event_time_lag_seconds=lag, running=running
    )
    assert shown.ok == (summarise(shown).level is not Level.TROUBLE)


def test_most_troubled_channels_come_first(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Rows are in order of trouble, then of name."""
    channels = {verdict.value: totals(verdict) for verdict in Verdict}
    channels["also failing"] = totals(Verdict.FAILING)
    ordered = [channel for channel, _ in by_trouble(snapshot(channels))]
    assert ordered == [
        "also failing",
        "failing",
        "blind",
        "degraded",
        "warming_up",
        "quiet",
        "ok",
    ]


def test_row_holds_the_three_headline_figures(
    totals: MakeTotals, histogram: Callable[..., Histogram]
) -> None:
    """Every figure of a channel stands in its row, in words."""
    figures = totals(
        Verdict.FAILING,
        verdict_reason="lost",
        messages=1_284,
        acknowledged_definite=1_280,
        unacknowledged=3,
        in_flight=1,
        definite_latency=histogram(*[900] * 94, *[4_000] * 4, 700_000, 700_000),
        gaps_open=1,
        gaps_opened=21,
        gaps_late=2,
        gaps_repaired=3,
        gaps_recovered_late=4,
        gaps_lost=5,
        gaps_tap_gap=6,
        repair_requests=70,
        repair_answered=29,
        repair_expired=1,
        repair_redundant=11,
        repair_response=histogram(3_000),
    )
    assert channel_text("a/b c", figures) == {
        "name": "a/b c",
        "href": "api/v1/channels/a%2Fb%20c",
        "verdict": "Failing",
        "reason": "messages were lost",
        "ack_p50": "≤ 1 s",
        "ack_p95": "≤ 5 s",
        "ack_p99": "> 10 min",
        "acknowledged": "1,280\nof 1,284",
        "unacknowledged": "3",
        "in_flight": "1",
        "gaps_open": "1",
        "gaps_opened": "21",
        "gaps_late": "2",
        "gaps_repaired": "3",
        "gaps_recovered_late": "4",
        "gaps_lost": "5",
        "gaps_tap_gap": "6",
        "repair_answered": "96 %",
        "repair_requests": "70",
        "repair_responses": "40\n11 redundant",
        "repair_p50": "≤ 5 s",
    }


def test_monitor_tells_its_own_state(
    snapshot: MakeSnapshot, totals: MakeTotals, histogram: Callable[..., Histogram]
) -> None:
    """Lag, records behind, last batch and dead letters stand above the rows."""
    shown = snapshot(
        {"a": totals(), "b": totals(Verdict.QUIET), "c": totals()},
        records_behind=12_345,
        batch_duration=histogram(400),
    )
    shown = replace(shown, undecodable={"too_large": 0, "protobuf_error": 2})
    text = snapshot_text(shown, shown_channels=2)
    assert text == {
        "lag": "1.2 s",
        "behind": "12,345",
        "clock": "2026-08-09 12:03:10 UTC",
        "batch": "≤ 0.5 s",
        "undecodable": "2: 2 protobuf error",
        "channels": "3: 1 quiet, 2 OK",
        "sentence": "Everything is fine",
        "none": "",
        "more": "1 less troubled channel not shown here",
    }


def test_columns_of_a_group_stand_together() -> None:
    """The table has the three groups of columns once each, nothing left out."""
    titles = [title for title, _ in groups()]
    assert titles == ["Acknowledgement (definite)", "Missing dependencies", "Repair"]
    assert tuple(c for _, columns in groups() for c in columns) == COLUMNS
