"""Acknowledgement of a message by a history, and its deadline (docs/figures.md, 4)."""

from __future__ import annotations

import pytest

from sds_core.observer.histogram import BUCKETS_MS
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect
from tests.support.channel import Channel
from tests.support.frames import START_MS

DEADLINE = 60_000 + 120_000
"""Of a message first seen at 60 s."""


def test_message_named_by_another_is_acknowledged_definitely(channel: Channel) -> None:
    """Latency runs from the first copy to the frame that names it."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=63_000, history=["m"])
    totals = channel.totals
    assert (totals.acknowledged_definite, totals.acknowledged_in_time) == (1, 1)
    assert totals.in_flight == 0
    assert totals.definite_latency.sum_ms == 3_000
    assert totals.definite_latency.counts[BUCKETS_MS.index(5_000)] == 1


def test_second_mention_changes_nothing(channel: Channel) -> None:
    """A message is acknowledged once, with the latency of the first mention."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, history=["m", "m"])
    channel.sync("carol", at=69_000, history=["m"])
    assert channel.totals.acknowledged_definite == 1
    assert channel.totals.definite_latency.sum_ms == 1_000


def test_mention_in_a_rebroadcast_acknowledges(channel: Channel) -> None:
    """Any frame of another participant counts, except replicas."""
    channel.content("b", "bob", at=60_000, waku_hash="1")
    channel.content("m", "alice", at=61_000)
    channel.take(
        channel.frames.content("b", "bob", history=["m"]), at=64_000, waku_hash="2"
    )
    assert channel.totals.rebroadcasts_retry == 1
    assert channel.totals.definite_latency.sum_ms == 3_000


def test_senders_own_mention_does_not_count(channel: Channel) -> None:
    """It says nothing about other participants."""
    channel.content("m", "alice", at=60_000)
    channel.sync("alice", at=61_000, history=["m"], holds=["m"])
    assert channel.totals.acknowledged_definite == 0
    assert channel.totals.acknowledged_probable == 0
    assert channel.totals.in_flight == 1


@pytest.mark.parametrize(("sender", "by"), [("", "bob"), ("alice", ""), ("", "")])
def test_unknown_sender_does_not_acknowledge(
    channel: Channel, sender: str, by: str
) -> None:
    """If either sender is unknown, they may be the same participant."""
    channel.content("m", sender, at=60_000)
    channel.sync(by, at=61_000, lamport=2_000, history=["m"], holds=["m"])
    assert channel.totals.acknowledged_definite == 0
    assert channel.totals.acknowledged_probable == 0
    channel.clock(DEADLINE + 1)
    assert channel.totals.unwitnessed == 1


def test_mention_before_the_first_copy_counts_with_latency_zero(
    channel: Channel,
) -> None:
    """The tap may see an acknowledgement before the message."""
    channel.sync("bob", at=60_000, history=["m"])
    channel.content("m", "alice", at=60_500)
    assert channel.totals.acknowledged_definite == 1
    assert channel.totals.acknowledged_in_time == 1
    assert channel.totals.definite_latency.sum_ms == 0
    assert channel.totals.definite_latency.count == 1


def test_early_mention_by_the_sender_leaves_that_of_another(channel: Channel) -> None:
    """Of the mentions before the first copy, the first by another counts."""
    channel.sync("alice", at=60_000, history=["m"])
    channel.sync("bob", at=62_000, history=["m"])
    channel.sync("carol", at=63_000, history=["m"])
    channel.content("m", "alice", at=60_500 + 3_000)
    assert channel.totals.acknowledged_definite == 1
    assert channel.totals.definite_latency.sum_ms == 0


def test_early_mention_of_a_late_message_has_its_own_latency(
    channel: Channel,
) -> None:
    """A first copy older than the clock keeps its own time as t0."""
    channel.sync("bob", at=70_000, history=["m"])
    channel.content("m", "alice", at=66_000)
    assert channel.totals.definite_latency.sum_ms == 4_000


def test_late_mention_keeps_its_own_time(channel: Channel) -> None:
    """The latency of a record older than the clock uses its own time."""
    channel.content("m", "alice", at=60_000)
    channel.clock(90_000)
    channel.sync("bob", at=61_500, history=["m"])
    assert channel.totals.definite_latency.sum_ms == 1_500


def test_mention_older_than_the_message_has_latency_zero(channel: Channel) -> None:
    """Latencies are not negative."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=59_000, history=["m"])
    assert channel.totals.definite_latency.sum_ms == 0


@pytest.mark.parametrize(
    ("late_ms", "in_time", "missed"), [(0, 1, 0), (1, 0, 1)], ids=["at", "after"]
)
def test_deadline_is_the_last_moment_in_time(
    channel: Channel, late_ms: int, in_time: int, missed: int
) -> None:
    """A mention at exactly 120 s is in time; a millisecond later it is not."""
    channel.content("m", "alice", at=60_000, lamport=1_000)
    channel.sync("bob", at=60_001, lamport=1_001)
    channel.sync("bob", at=DEADLINE + late_ms, history=["m"])
    channel.clock(DEADLINE + 1_000)
    totals = channel.totals
    assert (totals.acknowledged_in_time, totals.unacknowledged) == (in_time, missed)
    assert totals.acknowledged_definite == 1
    assert totals.definite_latency.sum_ms == 120_000 + late_ms


def test_silence_reaches_the_deadline_by_the_clock_alone(channel: Channel) -> None:
    """At the deadline a message is in flight; a millisecond later it is not."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, lamport=1_001)
    channel.clock(DEADLINE)
    assert (channel.totals.in_flight, channel.totals.unacknowledged) == (1, 0)
    assert channel.totals.oldest_in_flight_ms == START_MS + 60_000
    channel.clock(DEADLINE + 1)
    assert (channel.totals.in_flight, channel.totals.unacknowledged) == (0, 1)
    assert channel.totals.oldest_in_flight_ms is None


def test_late_message_has_its_deadline_from_the_clock(channel: Channel) -> None:
    """For deadlines, a late record has the time of the clock."""
    channel.clock(100_000)
    channel.content("m", "alice", at=60_000)
    channel.clock(220_000)
    assert channel.totals.in_flight == 1
    channel.clock(220_001)
    assert channel.totals.in_flight == 0


def test_oldest_in_flight_is_that_with_the_least_t0(channel: Channel) -> None:
    """The gauge depends on event time, not on order of arrival."""
    channel.content("m1", "alice", at=62_000)
    channel.content("m2", "alice", at=61_000, lamport=999)
    assert channel.totals.oldest_in_flight_ms == START_MS + 61_000
    channel.sync("bob", at=63_000, history=["m2"])
    assert channel.totals.oldest_in_flight_ms == START_MS + 62_000


# Unacknowledged or unwitnessed.


def test_message_without_anyone_after_it_is_unwitnessed(channel: Channel) -> None:
    """The last message of a quiet channel is not a fault."""
    channel.sync("bob", at=59_999, lamport=2_000)
    channel.content("m", "alice", at=60_000)
    channel.clock(DEADLINE + 1)
    assert (channel.totals.unwitnessed, channel.totals.unacknowledged) == (1, 0)


@pytest.mark.parametrize(
    ("by", "at", "lamport", "opportunity"),
    [
        ("bob", 60_001, 1_001, True),
        ("bob", 60_001, 1_000, False),  # It may not have known of m.
        ("bob", 60_000, 1_001, False),  # t0 itself lies outside.
        ("bob", DEADLINE, 1_001, True),
        ("bob", DEADLINE + 1, 1_001, False),
        ("alice", 60_001, 1_001, False),
        ("", 60_001, 1_001, False),
    ],
)
def test_opportunity_is_a_later_first_copy_by_another(
    channel: Channel, by: str, at: int, lamport: int, opportunity: bool
) -> None:
    """Only a first copy in (t0, deadline] with a greater Lamport timestamp."""
    channel.content("m", "alice", at=60_000, lamport=1_000)
    channel.sync(by, at=at, lamport=lamport)
    channel.clock(DEADLINE + 1)
    found = (channel.totals.unacknowledged, channel.totals.unwitnessed)
    assert found == ((1, 0) if opportunity else (0, 1))


def test_frame_whose_filter_holds_the_message_is_no_opportunity(
    channel: Channel,
) -> None:
    """Its sender has the message: nothing was missed, though two must show it."""
    for other in ("bob", "carol"):
        channel.sync(other, at=59_000)
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=62_000, lamport=1_001, holds=["m"])
    channel.clock(DEADLINE + 1)
    assert (channel.totals.unwitnessed, channel.totals.unacknowledged) == (1, 0)


def test_frame_whose_filter_lacks_the_message_is_an_opportunity(
    channel: Channel,
) -> None:
    """Also after another participant's filter held it."""
    for other in ("bob", "carol"):
        channel.sync(other, at=59_000)
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=62_000, lamport=1_001, holds=["m"])
    channel.sync("carol", at=63_000, lamport=1_001, holds=["other"])
    channel.clock(DEADLINE + 1)
    assert (channel.totals.unwitnessed, channel.totals.unacknowledged) == (0, 1)


@pytest.mark.parametrize(("spoke", "opportunity"), [(329_999, False), (330_000, True)])
def test_participant_that_was_off_when_the_message_was_sent_had_no_opportunity(
    channel: Channel, spoke: int, opportunity: bool
) -> None:
    """It is back from more than 300 s of silence, and has not caught up yet."""
    channel.sync("bob", at=spoke, lamport=1_000)
    channel.content("m", "alice", at=600_000, lamport=1_001)
    channel.sync("bob", at=630_000, lamport=1_002, holds=["other"])
    channel.clock(720_001)
    found = channel.totals.unacknowledged, channel.totals.unwitnessed
    assert found == ((1, 0) if opportunity else (0, 1))


def test_frame_with_an_unreadable_filter_is_an_opportunity(channel: Channel) -> None:
    """It does not show that its sender has the message."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=62_000, lamport=1_001, filter_=b"\x01")
    channel.clock(DEADLINE + 1)
    assert (channel.totals.unwitnessed, channel.totals.unacknowledged) == (0, 1)


def test_missed_opportunity_is_looked_for_among_the_newest_messages() -> None:
    """Beyond the limit a filter is not searched, and the message is no fault."""
    channel = Channel.after_warm_up(ObserverSettings(searched=2))
    for number in range(3):
        channel.content(f"m{number}", "alice", at=60_000, lamport=1_000 + number)
    channel.sync("bob", at=62_000, lamport=2_000, holds=["other"])
    channel.clock(DEADLINE + 1)
    assert (channel.totals.unwitnessed, channel.totals.unacknowledged) == (1, 2)
    assert channel.totals.left_out == {"filter_search": 1}


def test_content_is_an_opportunity_only_at_its_first_copy(channel: Channel) -> None:
    """A rebroadcast has the history of its first broadcast."""
    channel.content("b", "bob", at=59_000, lamport=1_001, waku_hash="1")
    channel.content("m", "alice", at=60_000, lamport=1_000)
    channel.content("b", "bob", at=61_000, lamport=1_001, waku_hash="2")
    channel.clock(DEADLINE + 1)
    assert channel.totals.rebroadcasts_retry == 1
    assert (channel.totals.unacknowledged, channel.totals.unwitnessed) == (0, 2)


def test_content_by_another_is_an_opportunity(channel: Channel) -> None:
    """Content counts like sync."""
    channel.content("m", "alice", at=60_000, lamport=1_000)
    channel.content("b", "bob", at=61_000, lamport=1_001)
    channel.clock(DEADLINE + 1)
    assert channel.totals.unacknowledged == 1


def test_ephemeral_frame_is_no_opportunity(channel: Channel) -> None:
    """It has no lamport timestamp and acknowledges nothing."""
    channel.content("m", "alice", at=60_000, lamport=0)
    channel.ephemeral("bob", at=61_000)
    channel.clock(DEADLINE + 1)
    assert channel.totals.unwitnessed == 1


def test_lamports_of_two_dialects_are_never_compared(channel: Channel) -> None:
    """One is in milliseconds, the other in seconds."""
    channel.content("m", "alice", at=60_000, lamport=1_000)
    channel.sync("nia", at=61_000, lamport=2_000, dialect=Dialect.NIM)
    channel.clock(DEADLINE + 1)
    assert channel.totals.unwitnessed == 1


def test_acknowledgement_after_the_deadline_retracts_nothing(
    channel: Channel,
) -> None:
    """It is counted with its latency; the earlier count stays."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, lamport=1_001)
    channel.clock(DEADLINE + 1)
    channel.sync("bob", at=400_000, history=["m"])
    totals = channel.totals
    assert (totals.unacknowledged, totals.acknowledged_in_time) == (1, 0)
    assert totals.acknowledged_definite == 1
    assert totals.definite_latency.sum_ms == 340_000


@pytest.mark.parametrize(("after_ms", "found"), [(0, 1), (1, 0)])
@pytest.mark.parametrize("evidence", ["definite", "probable"])
def test_nothing_counts_after_the_horizon(
    channel: Channel, after_ms: int, found: int, evidence: str
) -> None:
    """Evidence counts at t0 + 3600 s; a millisecond later it does not."""
    channel.content("m", "alice", at=60_000)
    at = 3_660_000 + after_ms
    if evidence == "definite":
        channel.sync("bob", at=at, history=["m"])
    else:
        channel.sync("bob", at=at, holds=["m"])
    totals = channel.totals
    assert getattr(totals, f"acknowledged_{evidence}") == found
    assert totals.acknowledged_definite + totals.acknowledged_probable == found


def test_details_name_each_definite_acknowledgement_once(channel: Channel) -> None:
    """With id, t0 and latency; probable ones are not included."""
    channel.content("m", "alice", at=60_000)
    channel.content("n", "alice", at=60_100, lamport=1_001)
    channel.sync("bob", at=62_000, history=["m"], holds=["m", "n"])
    assert [(d.message_id, d.t0_ms, d.latency_ms) for d in channel.details] == [
        ("m", START_MS + 60_000, 2_000)
    ]


# Pushed out by the limit, and seen again.


def test_deadline_of_a_forgotten_message_is_not_that_of_the_next() -> None:
    """Seen again, a message has a new deadline after 120 s."""
    channel = Channel(ObserverSettings(remembered=2))
    for number in range(3):
        channel.content(f"m{number}", "alice", at=number, lamport=number)
    # `m2` and the new `m0` are left.
    channel.content("m0", "alice", at=60_000, lamport=0)
    assert channel.totals.unwitnessed == 2
    channel.clock(120_001)
    assert channel.totals.in_flight == 2
    channel.clock(120_003)
    assert channel.totals.in_flight == 1
    channel.clock(180_000)
    assert channel.totals.in_flight == 1
    channel.clock(180_001)
    assert (channel.totals.in_flight, channel.totals.unwitnessed) == (0, 4)


def test_message_seen_again_at_the_clock_of_the_forgotten_one_ends_once() -> None:
    """Both deadlines then have the same time."""
    channel = Channel(ObserverSettings(remembered=1))
    for message_id in ("m0", "m1", "m0"):
        channel.content(message_id, "alice", at=0)
    assert channel.totals.in_flight == 1
    channel.clock(120_001)
    assert (channel.totals.in_flight, channel.totals.unwitnessed) == (0, 3)
