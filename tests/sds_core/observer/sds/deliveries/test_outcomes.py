"""What shows a delivery or its absence, and the outcome (docs/figures.md, 5)."""

from __future__ import annotations

from typing import Any

import pytest

from sds_core.wire import Dialect
from tests.support.channel import Channel
from tests.support.frames import bloom
from tests.support.observer.deliveries import (
    DEADLINE,
    HORIZON,
    LACKED,
    T0,
    lose,
    outcomes,
)

GRACE = 5_000


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
    lose(sent, lamport=1_002, at=T0 + HORIZON - DEADLINE - 1 + after_ms)
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
    """The deadline is 300 s after a frame first lacked it; then it is still in time."""
    sent.sync("bob", at=LACKED, lamport=1_001, holds=())
    sent.sync("bob", at=LACKED + DEADLINE // 2, lamport=1_002, holds=())
    sent.sync("bob", at=LACKED + DEADLINE + after_ms, lamport=1_003, holds=())
    assert outcomes(sent) == lost


def test_participant_that_comes_back_has_lost_nothing(sent: Channel) -> None:
    """A phone that was off for twenty minutes lacks messages, and gets them then."""
    back = T0 + 1_200_000
    sent.sync("bob", at=back, lamport=1_001, holds=())
    sent.sync("bob", at=back + 60_000, lamport=1_002, holds=())
    assert outcomes(sent) == {}
    sent.sync("bob", at=back + 90_000, lamport=1_003, holds=["m"])
    assert outcomes(sent) == {"recovered": 1}


def test_message_that_was_named_before_it_was_seen_loses_nothing(
    sent: Channel,
) -> None:
    """It was composed long before: what it lacks may have arrived since."""
    sent.sync("bob", at=LACKED, lamport=1_001, holds=())
    sent.sync("carol", at=LACKED + 1_000, lamport=1_002, history=["old"])
    sent.sync("bob", at=LACKED + DEADLINE // 2, lamport=1_003, holds=())
    sent.content("old", "bob", at=LACKED + DEADLINE + 1, lamport=1_004, holds=())
    assert outcomes(sent) == {}
    sent.sync("bob", at=LACKED + DEADLINE + 2, lamport=1_005, holds=())
    assert outcomes(sent) == {"lost": 1}


def test_message_that_was_named_before_it_was_seen_shows_no_lack(
    sent: Channel,
) -> None:
    """What it lacks may have been sent after it."""
    sent.sync("carol", at=T0 + 1_000, lamport=1_001, history=["old"])
    sent.content("old", "bob", at=LACKED, lamport=1_002, holds=())
    sent.sync("bob", at=LACKED + 10_000, lamport=1_003, holds=["m"])
    assert outcomes(sent) == {"first_pass": 1}


def test_participant_back_for_long_that_still_lacks_a_message_lost_it(
    sent: Channel,
) -> None:
    """It had five minutes to get it."""
    lose(sent, at=T0 + 1_200_000)
    assert outcomes(sent) == {"lost": 1}


def test_participant_shown_to_lack_a_message_before_it_left_has_lost_nothing(
    sent: Channel,
) -> None:
    """Back again, it has the deadline anew."""
    back = LACKED + 1_200_000
    sent.sync("bob", at=LACKED, lamport=1_001, holds=())
    sent.sync("bob", at=back, lamport=1_002, holds=())
    sent.sync("bob", at=back + DEADLINE, lamport=1_003, holds=())
    assert outcomes(sent) == {}
    sent.sync("bob", at=back + DEADLINE + 1, lamport=1_004, holds=())
    assert outcomes(sent) == {"lost": 1}


def test_participant_that_speaks_seldom_is_judged_at_its_second_return(
    sent: Channel,
) -> None:
    """Otherwise nothing would ever be lost to it."""
    for number in range(3):
        assert outcomes(sent) == {}
        at = LACKED + number * (DEADLINE + 1)
        sent.sync("bob", at=at, lamport=1_001 + number, holds=())
    assert outcomes(sent) == {"lost": 1}


def test_late_record_of_before_the_deadline_loses_nothing(sent: Channel) -> None:
    """The deadline is in event time, and no clock fires it."""
    sent.sync("bob", at=LACKED, lamport=1_001, holds=())
    sent.clock(T0 + 2 * DEADLINE)
    sent.sync("bob", at=LACKED + DEADLINE, lamport=1_002, holds=())
    assert outcomes(sent) == {}


def test_message_is_lost_once(sent: Channel) -> None:
    """Further frames without it change nothing."""
    at = lose(sent)
    sent.sync("bob", at=at + 1, lamport=1_004, holds=())
    assert outcomes(sent) == {"lost": 1}


def test_lost_message_that_comes_is_retracted_once(sent: Channel) -> None:
    """It counts neither as recovered nor as delivered at first pass."""
    at = lose(sent)
    sent.sync("bob", at=at + 1, lamport=1_004, holds=["m"])
    assert outcomes(sent) == {"lost": 1, "retracted": 1}
    sent.sync("bob", at=at + 2, lamport=1_005, history=["m"], holds=["m"])
    sent.sync("bob", at=at + 3, lamport=1_006, holds=())
    assert outcomes(sent) == {"lost": 1, "retracted": 1}
    assert sent.totals.delivery_recovery.count == 0


@pytest.mark.parametrize("of_frame", [{"history": ["m"]}, {"holds": ["m"]}])
@pytest.mark.parametrize(("after_ms", "retracted"), [(0, 1), (1, 0)])
def test_losses_are_retracted_within_the_horizon(
    sent: Channel, after_ms: int, retracted: int, of_frame: dict[str, Any]
) -> None:
    """Later evidence is ignored."""
    lose(sent)
    sent.sync("bob", at=T0 + HORIZON + after_ms, lamport=1_004, **of_frame)
    assert sent.totals.deliveries_lost == 1
    assert sent.totals.deliveries_retracted == retracted
