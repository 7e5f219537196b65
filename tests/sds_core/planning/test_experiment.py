"""Simulations of planned channels: their size, and what they measure."""

from __future__ import annotations

import math

import pytest

from sds_core.planning.channel import ChannelPlan, changed
from sds_core.planning.closed_forms import frame_parts
from sds_core.planning.estimates import difference, estimated
from sds_core.planning.experiment import (
    LEAST_MESSAGES,
    LONGEST_INTERVAL_S,
    MOST_MESSAGES,
    check_size,
    run,
    scenario_of,
    times_of,
)
from sds_core.planning.outcome import EPOCH_S
from sds_core.planning.what_if import FigureSource, compared
from sds_core.reading import TableError

PLAN = ChannelPlan(participants=3, messages_per_day=4_320, loss=0.1)
SIZE = 600


def test_same_arguments_give_the_same_outcome() -> None:
    """And another seed another one."""
    first = run(PLAN, 1, receptions=SIZE)
    assert repr(run(PLAN, 1, receptions=SIZE)) == repr(first)
    assert run(PLAN, 2, receptions=SIZE) != first


def test_parts_add_up_and_scale_to_a_day() -> None:
    """Without losses and sync messages each payload is one frame."""
    plan = changed(
        PLAN,
        {"loss": "0", "sync_interval_s": "100000", "retransmission_interval_s": "9999"},
    )
    outcome = run(plan, 1, receptions=SIZE)
    parts = [
        getattr(outcome, f"{part}_bytes_per_day")
        for part in ("content", "history", "filter", "repair", "other")
    ]
    assert sum(parts) == pytest.approx(outcome.bytes_per_day)
    assert outcome.frames_per_day == pytest.approx(4_320)
    assert outcome.sync_bytes_per_day == 0
    # The plan's payloads have 20 to 200 bytes.
    assert outcome.bytes_per_message == pytest.approx(
        sum(frame_parts(plan, 110)), abs=20
    )
    assert outcome.first_pass == outcome.eventual == outcome.consistent_in_time == 1
    assert math.isnan(outcome.recovery_mean_s)


def test_slow_channel_has_messages_and_its_own_rate() -> None:
    """It is simulated faster; its day has sync messages and few others."""
    slow = changed(PLAN, {"messages_per_day": "2"})
    times = times_of(slow, SIZE)
    assert times.interval_s == LONGEST_INTERVAL_S
    outcome = run(slow, 1, receptions=SIZE)
    assert outcome.messages >= LEAST_MESSAGES / 2
    content = outcome.bytes_per_day - outcome.sync_bytes_per_day
    assert content == pytest.approx(2 * sum(frame_parts(slow, 110)), rel=0.5)
    assert outcome.sync_bytes_per_day > 100 * content


def test_size_follows_from_receptions_within_bounds() -> None:
    """A large group has fewer messages, a small one not more than are needed."""
    crowd = changed(PLAN, {"participants": "1000"})
    for plan, messages in ((crowd, LEAST_MESSAGES), (PLAN, MOST_MESSAGES)):
        times = times_of(plan, 20_000)
        measured_s = times.until_s - times.from_s
        assert measured_s / times.interval_s == pytest.approx(messages)


def test_lead_of_a_large_group_is_short_and_loses_nothing() -> None:
    """It would make most of the frames; that of 100 participants is as of few."""
    for participants, quiet_s, is_lossless in ((100, 300, False), (101, 120, True)):
        plan = changed(PLAN, {"participants": str(participants)})
        times = times_of(plan)
        assert times.from_s - times.lead_s == quiet_s
        network = scenario_of(plan, times).network
        assert network.lossless_until_s == (times.lead_s if is_lossless else 0)
    slow = changed(PLAN, {"participants": "101", "t_max_s": "900"})
    assert times_of(slow).from_s - times_of(slow).lead_s == 300


def test_run_without_an_end_in_sight_is_refused() -> None:
    """A large group is none; one that is busy too, or a tiny interval, is."""
    check_size(changed(PLAN, {"participants": "1000"}))
    crowd = changed(PLAN, {"participants": "1000", "messages_per_day": "400000"})
    with pytest.raises(
        TableError, match=r"^the plan has about .*, but at most .* allowed"
    ):
        check_size(crowd)
    for key in ("sync_interval_s", "retransmission_interval_s"):
        with pytest.raises(TableError, match="allowed is a number from 1 to"):
            changed(PLAN, {key: "1e-9"})


@pytest.mark.parametrize(
    ("changes", "is_allowed"),
    [
        ({"participants": "10", "mean_away_s": "2592000"}, True),
        ({"participants": "1500", "mean_away_s": "3600"}, True),
        ({"participants": "1500", "mean_away_s": "2592000"}, False),
        ({"mean_away_s": "2592000", "sync_interval_s": "1"}, False),
        ({"mean_away_s": "2592000", "profile": "nim_sds"}, False),
        # Absent participants neither send nor receive.
        (
            {
                "participants": "300",
                "offline_share": "1",
                "mean_away_s": "2592000",
                "profile": "nim_sds",
            },
            True,
        ),
        ({"mean_away_s": "1", "mean_present_s": "1"}, True),
        ({"mean_away_s": "0.001", "mean_present_s": "0.001"}, False),
        ({"mean_away_s": "1e-9", "mean_present_s": "1e-9"}, False),
    ],
)
def test_absences_count_for_the_size_of_a_run(
    changes: dict[str, str], is_allowed: bool
) -> None:
    """A run lasts until participants have returned, with sync messages until then."""
    base = {"participants": "50", "messages_per_day": "10", "offline_share": "0.2"}
    plan = changed(PLAN, base | changes)
    if is_allowed:
        check_size(plan)
        return
    with pytest.raises(TableError, match=r"another mean_away_s$"):
        check_size(plan)


def test_time_shorter_than_an_epoch_gives_no_epoch() -> None:
    """A part of an epoch says little about the greatest count of a whole one."""
    outcome = run(changed(PLAN, {"messages_per_day": "50000"}), 1, receptions=SIZE)
    assert outcome.seconds < EPOCH_S
    assert math.isnan(outcome.epoch_messages)
    assert math.isnan(outcome.epoch_used)


def test_loss_costs_recovery_and_repair() -> None:
    """What is lost at first arrives later."""
    outcome = run(PLAN, 1, receptions=2_000)
    assert outcome.first_pass == pytest.approx(0.9, abs=0.05)
    assert outcome.eventual > 0.99
    assert outcome.recovery_p50_s < outcome.recovery_p95_s <= outcome.recovery_p99_s
    assert 0 < outcome.repair_overhead < 0.5
    assert 0 < outcome.epoch_messages < 100
    assert outcome.epoch_used == outcome.epoch_messages / 100
    assert outcome.monitor_first_pass == pytest.approx(outcome.first_pass, abs=0.05)


def test_without_repair_and_retransmission_losses_stay() -> None:
    """Some message stays missing."""
    plan = changed(PLAN, {"sds_r": "off", "retransmission_interval_s": "90000"})
    outcome = run(plan, 1, receptions=2_000)
    assert outcome.eventual == outcome.first_pass < 0.95
    assert outcome.retransmission_bytes_per_day == 0


@pytest.mark.parametrize("seed", [3, 4])
def test_segments_of_different_payloads_are_not_mixed(seed: int) -> None:
    """Although the measured time begins between the segments of a payload."""
    long = changed(
        PLAN,
        {
            "participants": "3",
            "messages_per_day": "20000",
            "payload_least_bytes": "3000000",
            "payload_most_bytes": "3000000",
            "loss": "0",
        },
    )
    outcome = run(long, seed, receptions=1_000)
    assert outcome.first_peer_in_time == 1


def test_segmented_payload_needs_enough_segments() -> None:
    """Parity replaces a lost one, and costs its bytes."""
    long = changed(
        PLAN,
        {
            "payload_least_bytes": "210000", "payload_most_bytes": "210000",
            "messages_per_day": "500", "participants": "2", "loss": "0.2",
        },
    )  # fmt: skip
    with_parity = changed(long, {"segment_parity": "0.5"})
    plain, repaired = (run(p, 1, receptions=150) for p in (long, with_parity))
    assert plain.first_pass == pytest.approx(0.8**3, abs=0.12)
    assert repaired.first_pass > plain.first_pass + 0.1
    assert plain.content_bytes_per_day == pytest.approx(500 * 210_000 * 1.3, rel=0.3)
    assert repaired.content_bytes_per_day > plain.content_bytes_per_day


@pytest.mark.parametrize(
    ("least", "most"), [(1, 204_800), (50_000, 150_000), (102_400, 102_400)]
)
def test_payloads_around_the_segment_size_keep_their_mean(
    least: int, most: int
) -> None:
    """None is cut, although the mean fits one segment and the longest does not."""
    plan = ChannelPlan(
        participants=3,
        messages_per_day=2_000,
        payload_least_bytes=least,
        payload_most_bytes=most,
    )
    assert plan.segments() == (1, 0)
    outcome = run(plan, 1, receptions=100)
    assert outcome.retransmission_bytes_per_day == 0
    content = 2_000 * (least + most) / 2
    assert outcome.content_bytes_per_day == pytest.approx(content, rel=0.001)


def test_offline_participants_receive_later() -> None:
    """By fetching what they missed."""
    plan = changed(
        PLAN,
        {
            "offline_share": "1", "mean_present_s": "600", "mean_away_s": "300",
            "fetch_after_s": "5", "loss": "0",
        },
    )  # fmt: skip
    outcome = run(plan, 1, receptions=2_000)
    assert outcome.first_pass < 0.9 < outcome.eventual
    assert outcome.recovery_mean_s > 60


def test_nothing_is_measured_if_nobody_is_there() -> None:
    """All leave at once, for as long as the run."""
    plan = changed(
        PLAN,
        {"offline_share": "1", "mean_present_s": "0.01", "mean_away_s": "1000000"},
    )
    outcome = run(plan, 1, receptions=10)
    assert outcome.messages == 0
    assert math.isnan(outcome.bytes_per_day)


def test_variants_send_the_same_messages_with_the_same_seed() -> None:
    """So the interval of a difference is narrower than that of independent runs."""
    plans = {"base": PLAN, "short": changed(PLAN, {"causal_history": "2"})}
    outcomes = {
        name: [run(plan, seed, receptions=SIZE) for seed in range(1, 5)]
        for name, plan in plans.items()
    }
    figures = compared(plans, outcomes)
    assert figures["base"]["first_pass"].source is FigureSource.CLOSED_FORM
    assert figures["base"]["first_pass"].estimate == (0.9, 0.9, 0.9)
    change = figures["short"]["frame_bytes"].change
    assert change.low == change.high == pytest.approx(-18 * 119, abs=2)
    history = figures["short"]["history_bytes_per_day"]
    assert history.source is FigureSource.SIMULATED
    assert history.change.high < 0
    assert math.isnan(figures["base"]["history_bytes_per_day"].change.value)
    sent = [[outcome.messages for outcome in outcomes[name]] for name in plans]
    assert len(set(sent[0])) > 1
    assert difference(*sent) == (0, 0, 0)


def test_interval_is_students() -> None:
    """Runs without the figure do not count; equal ones have no width."""
    estimate = estimated([1.0, 2.0, 3.0, math.nan])
    assert estimate.value == 2
    assert estimate.high - 2 == pytest.approx(4.302_653 / math.sqrt(3), rel=1e-6)
    assert estimated([0.5, 0.5]) == (0.5, 0.5, 0.5)
    assert all(map(math.isnan, estimated([math.nan])))
    assert estimated([math.nan, 3.0]) == (3.0, -math.inf, math.inf)
