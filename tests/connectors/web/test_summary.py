"""The verdict on everything, and what comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from connectors.web.summary import Level, names_by_trouble, summarise
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.clock import ClockFigures
from sds_core.observer.freshness import Freshness, MissingTopic
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import with_channels

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]


def test_healthy_fleet_is_summarised_in_three_words(
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
            "The query has stopped: no broker at kafka:9092",
        ),
        (
            {"error": "no broker", "running": False, "retrying": True},
            Level.TROUBLE,
            "The query has stopped and restarts: no broker",
        ),
        ({"running": False}, Level.TROUBLE, "The query has stopped"),
        (
            {"event_time_lag_seconds": None},
            Level.STARTING,
            "Too early to say: waiting for the first batch",
        ),
        ({"event_time_lag_seconds": 60}, Level.FINE, "Everything is fine"),
        (
            {"records_withheld": 1_234},
            Level.TROUBLE,
            "1,234 records wait until a transaction ends",
        ),
        ({"event_time_lag_seconds": 1_239.9}, Level.TROUBLE, "Behind by over 1,230 s"),
    ],
)
def test_state_of_the_job_comes_first(
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    job: dict[str, object],
    level: Level,
    sentence: str,
) -> None:
    """Figures of a job with problems are marked as such."""
    summary = summarise(snapshot({"chat": totals()}, **job))
    assert (summary.level, summary.sentence) == (level, sentence)


@pytest.mark.parametrize(
    ("reading", "sentence"),
    [
        (False, "Starting Spark, about 10 s"),
        (True, "Starting: reading the checkpoint"),
    ],
)
def test_unread_checkpoint_counts_as_starting(
    snapshot: MakeSnapshot, reading: bool, sentence: str
) -> None:
    """An empty list before priming is not a healthy fleet; a new one is not read."""
    summary = summarise(replace(snapshot(reading_checkpoint=reading), primed=False))
    assert summary.level is Level.STARTING
    assert summary.sentence == sentence


def test_kafka_that_does_not_answer_at_the_start_is_named(
    snapshot: MakeSnapshot,
) -> None:
    """Nobody waits for Spark then; after 15 s it is a trouble."""
    kafka = Freshness(asked_ms=1_786_276_990_123, answered_s=100)
    waiting = replace(snapshot(kafka=kafka), primed=False)
    summary = summarise(waiting.as_of(115))
    assert summary.level is Level.STARTING
    assert summary.sentence == "Starting: waiting for Kafka"
    summary = summarise(waiting.as_of(115.1))
    assert summary.level is Level.TROUBLE
    assert summary.sentence == (
        "Kafka has not answered since the start at 2026-08-09 12:03:10 UTC"
    )


def test_empty_topic_is_reported(snapshot: MakeSnapshot) -> None:
    """Without it, waiting for a first batch would look like a failure."""
    summary = summarise(replace(snapshot(event_time_lag_seconds=None), clock_ms=0))
    assert summary.level is Level.STARTING
    assert summary.sentence == "Too early to say: no record has been read yet"


@pytest.mark.parametrize(
    ("verdicts", "reason"),
    [
        ([], "no channel has been seen yet"),
        ([Verdict.WARMING_UP] * 2, "every channel is warming up"),
        ([Verdict.WARMING_UP, Verdict.QUIET], ""),
    ],
)
def test_nothing_is_fine_before_a_channel_has_a_verdict(
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    verdicts: list[Verdict],
    reason: str,
) -> None:
    """It is too early to say; one verdict is enough."""
    shown = snapshot({str(n): totals(one) for n, one in enumerate(verdicts)})
    summary = summarise(shown)
    assert shown.ok is not bool(reason)
    assert summary.level is (Level.STARTING if reason else Level.FINE)
    if reason:
        assert summary.sentence == f"Too early to say: {reason}"


def test_silence_of_kafka_comes_before_everything_else(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """What is known of the channels is as old; the sentence stays the same."""
    shown = snapshot(
        {"chat": totals(Verdict.FAILING)},
        error="no broker",
        kafka=Freshness(1_786_276_990_123, answered_s=100),
    )
    for now_s in (115.1, 3_000):
        later = shown.as_of(now_s)
        assert not later.ok
        summary = summarise(later)
        assert summary.level is Level.TROUBLE
        assert summary.sentence == (
            "Kafka has not answered since 2026-08-09 12:03:10 UTC"
        )
    assert "not answered" not in summarise(shown.as_of(115)).sentence


def test_all_troubles_are_named_in_one_sentence(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Failing, blind and behind together, with up to three names each."""
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
    """What may still recover is distinguished from failures."""
    summary = summarise(snapshot({"chat": totals(Verdict.DEGRADED)}))
    assert summary.level is Level.WARNING
    assert summary.sentence == "Nothing is failing; 1 of 1 channel degraded: chat"


def test_summary_uses_names_and_only_counts_muted_channels(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """A muted channel is not named."""
    table = ChannelTable(
        [ChannelEntry("/waku/1", name="Town"), ChannelEntry("m", mute_until_ms=2)]
    )
    failing = totals(Verdict.FAILING)
    named = snapshot({"/waku/1": failing, "m": failing, "o": totals()})
    assert (
        summarise(named.with_table(table, 1)).sentence
        == "1 of 2 channels failing: Town; 1 muted"
    )
    quiet = snapshot({"m": failing, "o": totals()}).with_table(table, 1)
    assert summarise(quiet).sentence == "Everything is fine; 1 muted"
    assert summarise(quiet.with_table(table, 2)).level is Level.TROUBLE


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("lag", [0, 61])
@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("muted", [True, False])
@pytest.mark.parametrize("behind_ms", [30_000, -30_001])
def test_summary_agrees_with_sds_monitor_ok(
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    verdict: Verdict,
    lag: int,
    running: bool,
    muted: bool,
    behind_ms: int,
) -> None:
    """The page is neither calmer nor more alarmed than that metric."""
    shown = snapshot(
        {"chat": totals(verdict)},
        event_time_lag_seconds=lag,
        running=running,
        clock=ClockFigures(behind_ms),
    )
    shown = with_channels(shown, muted=frozenset({"chat"} if muted else ()))
    assert shown.ok == (summarise(shown).level in (Level.FINE, Level.WARNING))


@pytest.mark.parametrize("lag", [1.25, None])
def test_wrong_clock_is_trouble(
    snapshot: MakeSnapshot, totals: MakeTotals, lag: float | None
) -> None:
    """Also if all records were dead letters, so that nothing else has begun."""
    shown = snapshot(event_time_lag_seconds=lag, clock=ClockFigures(120_400))
    if lag is None:
        shown = replace(shown, clock_ms=0)
    summary = summarise(shown)
    assert (summary.level, summary.sentence) == (
        Level.TROUBLE,
        "The monitor's clock differs from other clocks by over 120 s",
    )
    calm = summarise(snapshot({"a": totals()}, clock=ClockFigures(-30_000, 60_000)))
    assert calm.sentence == "Everything is fine"


def test_most_troubled_channels_come_first(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """Channels are in order of trouble, then of id; the muted come last."""
    channels = {verdict.value: totals(verdict) for verdict in Verdict}
    channels["also failing"] = totals(Verdict.FAILING)
    channels["muted"] = totals(Verdict.FAILING)
    shown = with_channels(snapshot(channels), muted=frozenset({"muted"}))
    assert names_by_trouble(shown.views["sds"]) == [
        "also failing",
        "failing",
        "blind",
        "degraded",
        "warming_up",
        "quiet",
        "ok",
        "muted",
    ]


def test_missing_topic_precedes_everything_but_kafka(
    snapshot: MakeSnapshot, totals: MakeTotals
) -> None:
    """The query fails because of it, and nothing is known of the channels."""
    shown = snapshot(
        {"chat": totals(Verdict.FAILING)},
        error="no topic",
        missing_topic=MissingTopic("frames", 1_786_276_990_123),
    )
    assert not shown.ok
    assert summarise(shown).level is Level.TROUBLE
    assert summarise(shown).sentence == (
        "Topic frames has been missing since 2026-08-09 12:03:10 UTC"
    )
