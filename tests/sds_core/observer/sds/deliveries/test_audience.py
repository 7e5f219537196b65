"""To whom a message is expected to be delivered (docs/figures.md, 5)."""

from __future__ import annotations

import pytest

from sds_core.observer.settings import ObserverSettings
from tests.support.channel import Channel
from tests.support.observer.deliveries import DEADLINE, HORIZON, T0, lose, outcomes


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
    lose(channel, holds=["m"], lamport=1_003, at=T0 + 10_000)
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
