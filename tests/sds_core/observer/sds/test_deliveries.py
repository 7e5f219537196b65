"""Delivery of each message to each participant (docs/figures.md, 5).

In most tests bob speaks at 59 s, and alice sends `m` at 60 s with lamport 1,000: what
bob sends from then on shows whether he has it.
"""

from __future__ import annotations

from typing import Any

import pytest

from sds_core.observer.settings import ObserverSettings
from sds_core.wire import BloomFilter, BloomParameters, Dialect
from tests.support.channel import Channel
from tests.support.frames import bloom

T0 = 60_000
GRACE = 5_000
DEADLINE = 300_000
HORIZON = 3_600_000


@pytest.fixture
def channel() -> Channel:
    """A channel after its warm-up in which bob spoke, without a filter, at 59 s."""
    channel = Channel.after_warm_up()
    channel.sync("bob", at=T0 - 1_000, lamport=500)
    return channel


@pytest.fixture
def sent(channel: Channel) -> Channel:
    """The same after alice has sent `m`."""
    channel.content("m", "alice", at=T0)
    return channel


def outcomes(channel: Channel) -> dict[str, int]:
    """The outcomes that occurred."""
    names = ("first_pass", "recovered", "lost", "retracted")
    found = {name: getattr(channel.totals, f"deliveries_{name}") for name in names}
    return {name: count for name, count in found.items() if count}


def lose(channel: Channel, by: str = "bob", lamport: int = 1_001) -> int:
    """A participant lacks `m` so late that it is lost; returns the time."""
    at = T0 + DEADLINE + 1
    channel.sync(by, at=at, lamport=lamport, holds=())
    return at


# Evidence that a participant has a message.


@pytest.mark.parametrize("of_frame", [{"history": ["m"]}, {"holds": ["m"]}])
@pytest.mark.parametrize(
    ("at", "lamport"), [(T0, 1), (T0 + 1, 1_001), (T0 + DEADLINE + 1, 1_001)]
)
def test_history_or_filter_shows_a_delivery(
    sent: Channel, of_frame: dict[str, Any], at: int, lamport: int
) -> None:
    """The time and the Lamport timestamp of the frame do not matter."""
    sent.sync("bob", at=at, lamport=lamport, **of_frame)
    assert outcomes(sent) == {"first_pass": 1}


def test_content_shows_a_delivery_as_sync_does(sent: Channel) -> None:
    """This holds for its first copy."""
    sent.content("b", "bob", at=T0 + 1, history=["m"])
    assert outcomes(sent) == {"first_pass": 1}


def test_ephemeral_frame_with_a_filter_shows_a_delivery(sent: Channel) -> None:
    """A filter proves what its owner has, also without a Lamport timestamp."""
    frame = sent.frames.ephemeral("bob")._replace(bloom_filter=bloom(["m"]))
    sent.take(frame, at=T0 + 1)
    assert outcomes(sent) == {"first_pass": 1}


def test_delivery_ends_once(sent: Channel) -> None:
    """Later frames change nothing, whether they hold the message or not."""
    sent.sync("bob", at=T0 + 1, lamport=1_001, history=["m"])
    sent.sync("bob", at=T0 + DEADLINE + 1, lamport=1_002, holds=())
    sent.sync("bob", at=T0 + DEADLINE + 2, lamport=1_003, holds=["m"], history=["m"])
    assert outcomes(sent) == {"first_pass": 1}


def test_message_in_history_and_filter_is_delivered_once(sent: Channel) -> None:
    """Two signs in one frame count once."""
    sent.sync("bob", at=T0 + 1, history=["m", "m"], holds=["m"])
    assert outcomes(sent) == {"first_pass": 1}


def test_history_comes_before_a_filter_that_lacks_the_message(sent: Channel) -> None:
    """A participant that names a message has it, whatever its filter says."""
    sent.sync("bob", at=T0 + DEADLINE + 1, lamport=1_001, history=["m"], holds=())
    assert outcomes(sent) == {"first_pass": 1}


@pytest.mark.parametrize(("after_ms", "expected"), [(0, {"first_pass": 1}), (1, {})])
@pytest.mark.parametrize("of_frame", [{"history": ["m"]}, {"holds": ["m"]}])
def test_nothing_counts_after_the_horizon(
    sent: Channel, after_ms: int, expected: dict[str, int], of_frame: dict[str, Any]
) -> None:
    """A frame 3600 s after the first copy counts; a millisecond later it does not."""
    sent.sync("bob", at=T0 + 1, lamport=1_001)  # Keeps him active, shows nothing.
    sent.sync("bob", at=T0 + HORIZON + after_ms, lamport=1_002, **of_frame)
    assert outcomes(sent) == expected


@pytest.mark.parametrize(("after_ms", "lost"), [(0, {"lost": 1}), (1, {})])
def test_nothing_is_lost_after_the_horizon(
    sent: Channel, after_ms: int, lost: dict[str, int]
) -> None:
    """A frame at the horizon is the last one that can cause a loss."""
    sent.sync("bob", at=T0 + 1, lamport=1_001)
    sent.sync("bob", at=T0 + HORIZON + after_ms, lamport=1_002, holds=())
    assert outcomes(sent) == lost


def test_horizon_runs_on_the_clock(sent: Channel) -> None:
    """Only the horizon uses the clock; all else uses the record's own time."""
    sent.clock(T0 + HORIZON + 1)
    sent.sync("bob", at=T0 + 1, lamport=1_001, history=["m"])
    assert outcomes(sent) == {}


# Evidence that a participant lacks it.


@pytest.mark.parametrize(
    ("after_ms", "outcome"), [(GRACE, "first_pass"), (GRACE + 1, "recovered")]
)
def test_filter_within_the_grace_shows_nothing_missing(
    sent: Channel, after_ms: int, outcome: str
) -> None:
    """The message may have been in transit when the frame was composed."""
    sent.sync("bob", at=T0 + after_ms, lamport=1_001, holds=())
    sent.sync("bob", at=T0 + 10_000, lamport=1_002, holds=["m"])
    assert outcomes(sent) == {outcome: 1}


def test_grace_runs_in_event_time(sent: Channel) -> None:
    """A late record from within the grace time proves nothing missing."""
    sent.clock(T0 + 20_000)
    sent.sync("bob", at=T0 + GRACE, lamport=1_001, holds=())
    sent.sync("bob", at=T0 + 20_000, lamport=1_002, holds=["m"])
    assert outcomes(sent) == {"first_pass": 1}


@pytest.mark.parametrize(
    "of_frame",
    [
        {"lamport": 1_000, "holds": ()},
        {"lamport": 999, "holds": ()},
        {"lamport": 1_001},
        {"lamport": 1_001, "filter_": b"\x01"},
        {"lamport": 1_001, "holds": (), "dialect": Dialect.NIM},
    ],
    ids=["same lamport", "lower lamport", "no filter", "unreadable", "other dialect"],
)
def test_frame_that_need_not_show_the_message_shows_nothing_missing(
    sent: Channel, of_frame: dict[str, Any]
) -> None:
    """Also long after the message; a later frame can still decide."""
    sent.sync("bob", at=T0 + DEADLINE + 1, **of_frame)
    assert outcomes(sent) == {}
    sent.sync("bob", at=T0 + DEADLINE + 2, lamport=1_002, holds=["m"])
    assert outcomes(sent) == {"first_pass": 1}


def test_frame_of_the_other_dialect_shows_what_it_has(sent: Channel) -> None:
    """Only the Lamport timestamps of two dialects cannot be compared."""
    sent.sync("bob", at=T0 + 1, history=["m"], dialect=Dialect.NIM)
    assert outcomes(sent) == {"first_pass": 1}


def test_lamports_of_two_dialects_are_never_compared(sent: Channel) -> None:
    """Also after a frame of the message's own dialect."""
    sent.sync("bob", at=T0 + 1, lamport=1_001)
    at = T0 + DEADLINE + 1
    sent.sync("bob", at=at, lamport=9_000, holds=(), dialect=Dialect.NIM)
    assert outcomes(sent) == {}


def test_ephemeral_frame_shows_nothing_missing(channel: Channel) -> None:
    """It has no Lamport timestamp to compare."""
    channel.content("m", "alice", at=T0, lamport=0)
    frame = channel.frames.ephemeral("bob")._replace(bloom_filter=bloom())
    channel.take(frame, at=T0 + DEADLINE + 1)
    assert outcomes(channel) == {}


@pytest.mark.parametrize("dialect", Dialect)
def test_deliveries_are_found_in_either_dialect(dialect: Dialect) -> None:
    """The same rules hold within each dialect."""
    channel = Channel.after_warm_up(dialect=dialect)
    for name in ("bob", "carol", "dave"):
        channel.sync(name, at=T0 - 1_000, lamport=500)
    channel.content("m", "alice", at=T0)
    channel.sync("carol", at=T0 + 10_000, lamport=1_001, holds=())
    channel.sync("bob", at=T0 + 20_000, lamport=1_001, holds=["m"])
    channel.sync("carol", at=T0 + 20_000, lamport=1_002, holds=["m"])
    lose(channel, "dave")
    assert outcomes(channel) == {"first_pass": 1, "recovered": 1, "lost": 1}


# First copies only.


def test_rebroadcast_shows_nothing(channel: Channel) -> None:
    """It has the history and the filter of its first broadcast."""
    frame = channel.content("b", "bob", at=T0 - 500, lamport=1_001, holds=())
    channel.content("m", "alice", at=T0)
    at = T0 + DEADLINE + 1
    channel.take(frame, at=at)
    assert channel.totals.rebroadcasts_retry == 1
    channel.take(frame._replace(bloom_filter=bloom(["m"])), at=at + 1)
    assert channel.totals.rebroadcasts_retry == 2
    assert outcomes(channel) == {}


def test_rebroadcast_that_is_seen_first_carries_an_old_filter(sent: Channel) -> None:
    """The tap missed the first broadcast; the Lamport timestamp shows the age."""
    sent.content("b", "bob", at=T0 + DEADLINE + 1, lamport=999, holds=())
    assert outcomes(sent) == {}


def test_collision_shows_nothing(sent: Channel) -> None:
    """A known id with another sender is not a first copy by that sender."""
    sent.content("m", "bob", at=T0 + 1, lamport=1_001, history=["m"], holds=["m"])
    assert sent.totals.message_id_collisions == 1
    assert outcomes(sent) == {}


def test_replica_shows_nothing(sent: Channel) -> None:
    """It is the same broadcast, seen by another tap."""
    frame = sent.frames.sync("bob", 1_001)
    sent.take(frame, at=T0 + 10_000, waku_hash="1")
    sent.take(frame._replace(bloom_filter=bloom(["m"])), at=T0 + 10_001, waku_hash="1")
    assert sent.totals.replicas == 1
    assert outcomes(sent) == {}


# Who should have it.


@pytest.mark.parametrize(
    ("before_ms", "expected"),
    [
        (0, {}),
        (1, {"first_pass": 1}),
        (HORIZON, {"first_pass": 1}),
        (HORIZON + 1, {}),
        (-1, {}),
    ],
)
def test_delivery_is_expected_if_a_participant_spoke_within_the_horizon(
    before_ms: int, expected: dict[str, int]
) -> None:
    """Those who sent from an hour before the first copy to just before it."""
    t0 = 4_000_000
    channel = Channel.after_warm_up()
    if before_ms > 0:
        channel.sync("bob", at=t0 - before_ms)
    channel.content("m", "alice", at=t0)
    if before_ms <= 0:
        channel.sync("bob", at=t0 - before_ms)
    channel.sync("bob", at=t0 + 10, history=["m"])
    assert outcomes(channel) == expected


def test_participant_that_spoke_at_the_same_time_was_not_active() -> None:
    """Although its record has a lower offset: it did not speak before."""
    channel = Channel.after_warm_up()
    channel.sync("bob", at=T0)
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 10, history=["m"])
    assert outcomes(channel) == {}


def test_participant_seen_later_in_the_topic_was_not_active() -> None:
    """Although its record has an earlier time."""
    channel = Channel.after_warm_up()
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 - 1_000)
    channel.sync("bob", at=T0 + 10, history=["m"])
    assert outcomes(channel) == {}


def test_ephemeral_frame_makes_its_sender_active() -> None:
    """It is a first copy."""
    channel = Channel.after_warm_up()
    channel.ephemeral("bob", at=T0 - 1)
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 1, history=["m"])
    assert outcomes(channel) == {"first_pass": 1}


def test_named_participant_is_not_active() -> None:
    """Only a participant that speaks is active."""
    channel = Channel.after_warm_up()
    channel.sync("carol", at=T0 - 1, history=[("x", "bob")])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 1, history=["m"])
    assert outcomes(channel) == {}


def test_message_is_not_delivered_to_its_sender(channel: Channel) -> None:
    """The sender's own frames do not count."""
    channel.sync("alice", at=T0 - 1_000, lamport=500)
    channel.content("m", "alice", at=T0)
    channel.sync("alice", at=T0 + 1, lamport=1_001, history=["m"])
    lose(channel, "alice", lamport=1_002)
    assert outcomes(channel) == {}


def test_message_without_a_sender_has_no_deliveries(channel: Channel) -> None:
    """Any participant may be its sender."""
    channel.content("m", "", at=T0)
    channel.sync("bob", at=T0 + 1, history=["m"])
    assert outcomes(channel) == {}


def test_frame_without_a_sender_shows_nothing(channel: Channel) -> None:
    """Frames without a sender may come from several participants."""
    channel.sync("", at=T0 - 1_000, lamport=500)
    channel.content("m", "alice", at=T0)
    channel.sync("", at=T0 + 1, lamport=1_001, history=["m"])
    lose(channel, "", lamport=1_002)
    assert outcomes(channel) == {}


def test_each_participant_and_each_message_is_judged_alone(channel: Channel) -> None:
    """A delivery to one participant does not affect another."""
    channel.sync("carol", at=T0 - 500, lamport=500)
    channel.content("m", "alice", at=T0)
    channel.content("n", "alice", at=T0 + 1, lamport=1_001)
    channel.sync("bob", at=T0 + 10_000, lamport=1_002, holds=["m"])
    assert outcomes(channel) == {"first_pass": 1}
    channel.sync("carol", at=T0 + 10_000, lamport=1_002, holds=["m", "n"])
    assert outcomes(channel) == {"first_pass": 3}
    channel.sync("bob", at=T0 + DEADLINE + 2, lamport=1_003, holds=["m"])
    assert outcomes(channel) == {"first_pass": 3, "lost": 1}


def test_participant_that_never_speaks_again_ends_nothing(sent: Channel) -> None:
    """No timer ends a delivery: silence proves nothing."""
    sent.rest()
    assert outcomes(sent) == {}


def test_delivery_is_followed_over_two_horizons_of_silence() -> None:
    """The participant speaks an hour before the message and an hour after it."""
    channel = Channel.after_warm_up()
    channel.sync("bob", at=T0)
    channel.content("m", "alice", at=T0 + HORIZON)
    channel.sync("bob", at=T0 + 2 * HORIZON, history=["m"])
    assert outcomes(channel) == {"first_pass": 1}


def test_forgotten_message_ends_nothing() -> None:
    """A message evicted by the limit is not followed."""
    channel = Channel.after_warm_up(ObserverSettings(remembered=2))
    channel.sync("bob", at=T0 - 1_000, lamport=500)
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 1, lamport=1_001)
    channel.content("n1", "alice", at=T0 + 2, lamport=1_002)
    channel.content("n2", "alice", at=T0 + 3, lamport=1_003)
    channel.sync("bob", at=T0 + DEADLINE + 10, lamport=1_004, holds=["n1", "n2"])
    assert outcomes(channel) == {"first_pass": 2}


# Recovered, lost and retracted.


def test_recovery_takes_from_the_first_frame_that_lacks_it(sent: Channel) -> None:
    """Until the first frame that has it, in event time."""
    sent.sync("bob", at=T0 + 10_000, lamport=1_001, holds=())
    sent.sync("bob", at=T0 + 20_000, lamport=1_002, holds=())
    sent.sync("bob", at=T0 + 50_000, lamport=1_003, holds=["m"])
    assert outcomes(sent) == {"recovered": 1}
    assert sent.totals.delivery_recovery.count == 1
    assert sent.totals.delivery_recovery.sum_ms == 40_000


def test_recovery_takes_no_less_than_no_time(sent: Channel) -> None:
    """The recovering frame may be a late record."""
    sent.sync("bob", at=T0 + 10_000, lamport=1_001, holds=())
    sent.sync("bob", at=T0 + 9_000, lamport=1_000, holds=["m"])
    assert outcomes(sent) == {"recovered": 1}
    assert sent.totals.delivery_recovery.count == 1
    assert sent.totals.delivery_recovery.sum_ms == 0


@pytest.mark.parametrize(("after_ms", "lost"), [(0, {}), (1, {"lost": 1})])
def test_message_is_lost_at_the_first_frame_after_the_deadline(
    sent: Channel, after_ms: int, lost: dict[str, int]
) -> None:
    """At exactly 300 s it is still in time."""
    sent.sync("bob", at=T0 + DEADLINE + after_ms, lamport=1_001, holds=())
    assert outcomes(sent) == lost


def test_late_record_of_before_the_deadline_loses_nothing(sent: Channel) -> None:
    """The deadline is in event time, and no clock fires it."""
    sent.clock(T0 + 2 * DEADLINE)
    sent.sync("bob", at=T0 + DEADLINE, lamport=1_001, holds=())
    assert outcomes(sent) == {}


def test_message_is_lost_once(sent: Channel) -> None:
    """Further frames without it change nothing."""
    at = lose(sent)
    sent.sync("bob", at=at + 1, lamport=1_002, holds=())
    assert outcomes(sent) == {"lost": 1}


def test_lost_message_that_comes_is_retracted_once(sent: Channel) -> None:
    """It counts neither as recovered nor as delivered at first pass."""
    at = lose(sent)
    sent.sync("bob", at=at + 1, lamport=1_002, holds=["m"])
    assert outcomes(sent) == {"lost": 1, "retracted": 1}
    sent.sync("bob", at=at + 2, lamport=1_003, history=["m"], holds=["m"])
    sent.sync("bob", at=at + 3, lamport=1_004, holds=())
    assert outcomes(sent) == {"lost": 1, "retracted": 1}
    assert sent.totals.delivery_recovery.count == 0


@pytest.mark.parametrize("of_frame", [{"history": ["m"]}, {"holds": ["m"]}])
@pytest.mark.parametrize(("after_ms", "retracted"), [(0, 1), (1, 0)])
def test_losses_are_retracted_within_the_horizon(
    sent: Channel, after_ms: int, retracted: int, of_frame: dict[str, Any]
) -> None:
    """Later evidence is ignored."""
    lose(sent)
    sent.sync("bob", at=T0 + HORIZON + after_ms, lamport=1_002, **of_frame)
    assert sent.totals.deliveries_lost == 1
    assert sent.totals.deliveries_retracted == retracted


# Filters that rolled over.


def test_filter_with_fewer_bits_shows_nothing_older_missing(channel: Channel) -> None:
    """It may have dropped `m`, so this frame and later ones prove nothing."""
    channel.sync("bob", at=T0 - 500, lamport=600, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 10_000, lamport=1_001, holds=["c"])
    channel.sync("bob", at=T0 + DEADLINE + 1, lamport=1_002, holds=["c", "d"])
    assert outcomes(channel) == {}
    channel.sync("bob", at=T0 + DEADLINE + 2, lamport=1_003, holds=["c", "m"])
    assert outcomes(channel) == {"first_pass": 1}


def test_roll_over_takes_nothing_back(channel: Channel) -> None:
    """A message that was missing before it stays missing."""
    channel.sync("bob", at=T0 - 500, lamport=600, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 10_000, lamport=1_001, holds=["a", "b"])
    channel.sync("bob", at=T0 + 20_000, lamport=1_002, holds=["c"])
    channel.sync("bob", at=T0 + 30_000, lamport=1_003, holds=["c", "m"])
    assert outcomes(channel) == {"recovered": 1}
    assert channel.totals.delivery_recovery.sum_ms == 20_000


@pytest.mark.parametrize(("sooner_ms", "lost"), [(0, {"lost": 1}), (1, {})])
def test_message_of_the_roll_over_or_later_can_be_missing(
    channel: Channel, sooner_ms: int, lost: dict[str, int]
) -> None:
    """The roll-over has the event time of the first frame that shows it."""
    rolled = T0 + 10_000
    channel.sync("bob", at=T0, lamport=600, holds=["a", "b"])
    channel.sync("bob", at=rolled, lamport=601, holds=["c"])
    channel.content("m", "alice", at=rolled - sooner_ms)
    channel.sync("bob", at=rolled + DEADLINE + 1, lamport=1_001, holds=["c", "d"])
    assert outcomes(channel) == lost


def test_filter_with_as_many_bits_has_not_rolled_over(channel: Channel) -> None:
    """No id was added to it."""
    channel.sync("bob", at=T0 - 500, lamport=600, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + DEADLINE + 1, lamport=1_001, holds=["a", "b"])
    assert outcomes(channel) == {"lost": 1}


HELD = tuple(f"a{number}" for number in range(6))
"""Messages of alice that bob's filter held, in their order."""


@pytest.mark.parametrize(
    ("dropped", "noticed"), list(zip(HELD, (1, 1, 1, 0, 0, 1), strict=True))
)
def test_filter_that_lost_an_id_shows_nothing_older_missing(
    channel: Channel, dropped: str, noticed: int
) -> None:
    """The first three ids and the newest are watched, even if the fill grows."""
    for number, message_id in enumerate(HELD):
        at = T0 - 500 + number
        channel.content(message_id, "alice", at=at, lamport=600 + number)
        holds = HELD[: number + 1]
        channel.sync("bob", at=at, lamport=700 + number, holds=holds)
    channel.content("m", "alice", at=T0)
    held = [message_id for message_id in HELD if message_id != dropped]
    at = T0 + DEADLINE + 1
    channel.sync("bob", at=at, lamport=1_001, holds=[*held, "b", "c", "d"])
    assert channel.totals.deliveries_first_pass == len(HELD)
    assert channel.totals.deliveries_lost == 1 - noticed


def test_ids_of_after_a_roll_over_are_watched_anew(channel: Channel) -> None:
    """The next roll-over is detected too."""
    channel.content("a", "alice", at=T0 - 900, lamport=600)
    channel.sync("bob", at=T0 - 800, lamport=700, holds=["a"])
    channel.content("b", "alice", at=T0 - 700, lamport=701)
    channel.sync("bob", at=T0 - 600, lamport=702, holds=["b", "x", "y"])  # First.
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 10_000, lamport=1_001, holds=["b", "x", "y", "z"])
    channel.sync("bob", at=T0 + 20_000, lamport=1_002, holds=["c", "x", "y", "z", "m"])
    # Had the second been one as well, it would be a first pass.
    assert outcomes(channel) == {"first_pass": 2, "recovered": 1}
    channel.content("n", "alice", at=T0 + 19_999, lamport=1_003)
    at = T0 + 2 * DEADLINE
    channel.sync("bob", at=at, lamport=1_004, holds=["c", "x", "y", "z", "m", "o"])
    assert outcomes(channel) == {"first_pass": 2, "recovered": 1}


def test_participant_that_restarts_without_state_shows_nothing_older_missing(
    channel: Channel,
) -> None:
    """After a restart without its state its filter is empty."""
    channel.sync("bob", at=T0 - 500, lamport=600, holds=["a"])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + DEADLINE + 1, lamport=1_001, holds=())
    assert outcomes(channel) == {}


def test_filter_of_another_size_shows_nothing_older_missing() -> None:
    """It was built anew, although more of its bits may be set."""
    smaller = BloomFilter(Dialect.NIM, BloomParameters(capacity=100, error_rate=0.001))
    smaller.add_all([f"a{number}" for number in range(50)])
    channel = Channel.after_warm_up(dialect=Dialect.NIM)
    channel.sync("bob", at=T0 - 500, lamport=600, holds=["a0"])
    channel.content("m", "alice", at=T0)
    at = T0 + DEADLINE + 1
    channel.sync("bob", at=at, lamport=1_001, filter_=smaller.to_wire())
    assert outcomes(channel) == {}
    channel.content("n", "alice", at=at, lamport=1_002)
    at += DEADLINE + 1
    channel.sync("bob", at=at, lamport=1_003, filter_=smaller.to_wire())
    assert outcomes(channel) == {"lost": 1}


@pytest.mark.parametrize("lamport", [1_999, 2_000])
def test_filter_seen_late_shows_no_roll_over(channel: Channel, lamport: int) -> None:
    """A frame without a greater Lamport timestamp has an old filter."""
    channel.sync("bob", at=T0 - 500, lamport=2_000, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 1, lamport=lamport, holds=["a"])
    channel.sync("bob", at=T0 + DEADLINE + 1, lamport=2_001, holds=["a", "b"])
    assert outcomes(channel) == {"lost": 1}


def test_filter_seen_late_is_not_compared_with_the_next(channel: Channel) -> None:
    """The newest filter stays the one to compare with."""
    channel.sync("bob", at=T0 - 500, lamport=2_000, holds=["a", "b", "c"])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 1, lamport=1_999, holds=["a"])
    channel.sync("bob", at=T0 + DEADLINE + 1, lamport=2_001, holds=["a", "b"])
    assert outcomes(channel) == {}


def test_filter_seen_late_lacks_what_it_lacks(channel: Channel) -> None:
    """It proves a message missing if its Lamport timestamp is greater."""
    channel.sync("bob", at=T0 - 500, lamport=2_000, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + DEADLINE + 1, lamport=1_999, holds=["a"])
    assert outcomes(channel) == {"lost": 1}


def test_filter_of_an_ephemeral_frame_shows_no_roll_over(channel: Channel) -> None:
    """It is unknown whether it is the newest."""
    channel.sync("bob", at=T0 - 500, lamport=600, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    frame = channel.frames.ephemeral("bob")._replace(bloom_filter=bloom(["a"]))
    channel.take(frame, at=T0 + 1)
    channel.sync("bob", at=T0 + DEADLINE + 1, lamport=1_001, holds=["a", "b"])
    assert outcomes(channel) == {"lost": 1}


def test_unreadable_filter_shows_no_roll_over(channel: Channel) -> None:
    """A frame without a filter does not show one either."""
    channel.sync("bob", at=T0 - 500, lamport=600, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 1, lamport=1_001, filter_=b"\x01")
    channel.sync("bob", at=T0 + 2, lamport=1_002)
    channel.sync("bob", at=T0 + DEADLINE + 1, lamport=1_003, holds=["a", "b"])
    assert outcomes(channel) == {"lost": 1}


def test_roll_over_of_one_participant_is_not_that_of_another(channel: Channel) -> None:
    """Each filter is compared with an earlier one of the same owner."""
    channel.sync("carol", at=T0 - 500, lamport=600, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    channel.sync("carol", at=T0 + 1, lamport=1_001, holds=["c"])
    lose(channel, "bob")
    lose(channel, "carol", lamport=1_002)
    assert outcomes(channel) == {"lost": 1}


def test_filter_is_compared_after_an_hour_of_silence(channel: Channel) -> None:
    """As long as its owner may be active for a message that is followed."""
    channel.sync("bob", at=T0, lamport=600, holds=["a", "b"])
    t0 = T0 + 3_000_000
    channel.content("m", "alice", at=t0)
    channel.sync("bob", at=T0 + HORIZON + 120_000, lamport=1_001, holds=())
    assert outcomes(channel) == {}
