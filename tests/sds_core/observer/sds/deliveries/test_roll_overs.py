"""Filters that rolled over: they show no older message missing (docs/figures.md, 5)."""

from __future__ import annotations

import pytest

from sds_core.wire import BloomFilter, BloomParameters, Dialect
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
    lose(channel, holds=["c", "d"], at=rolled + 10_000)
    assert outcomes(channel) == lost


def test_filter_with_as_many_bits_has_not_rolled_over(channel: Channel) -> None:
    """No id was added to it."""
    channel.sync("bob", at=T0 - 500, lamport=600, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    lose(channel, holds=["a", "b"])
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
    lose(channel, holds=[*held, "b", "c", "d"])
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
    for number, later in enumerate((10_000, 160_000, 310_001)):
        lamport = 1_003 + number
        channel.sync("bob", at=at + later, lamport=lamport, filter_=smaller.to_wire())
    assert outcomes(channel) == {"lost": 1}


@pytest.mark.parametrize("lamport", [1_999, 2_000])
def test_filter_seen_late_shows_no_roll_over(channel: Channel, lamport: int) -> None:
    """A frame without a greater Lamport timestamp has an old filter."""
    channel.sync("bob", at=T0 - 500, lamport=2_000, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 1, lamport=lamport, holds=["a"])
    lose(channel, lamport=2_001, holds=["a", "b"])
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
    lose(channel, lamport=1_997, holds=["a"])
    assert outcomes(channel) == {"lost": 1}


def test_filter_of_an_ephemeral_frame_shows_no_roll_over(channel: Channel) -> None:
    """It is unknown whether it is the newest."""
    channel.sync("bob", at=T0 - 500, lamport=600, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    frame = channel.frames.ephemeral("bob")._replace(bloom_filter=bloom(["a"]))
    channel.take(frame, at=T0 + 1)
    lose(channel, holds=["a", "b"])
    assert outcomes(channel) == {"lost": 1}


def test_unreadable_filter_shows_no_roll_over(channel: Channel) -> None:
    """A frame without a filter does not show one either."""
    channel.sync("bob", at=T0 - 500, lamport=600, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 1, lamport=1_001, filter_=b"\x01")
    channel.sync("bob", at=T0 + 2, lamport=1_002)
    lose(channel, lamport=1_003, holds=["a", "b"])
    assert outcomes(channel) == {"lost": 1}


def test_roll_over_of_one_participant_is_not_that_of_another(channel: Channel) -> None:
    """Each filter is compared with an earlier one of the same owner."""
    channel.sync("carol", at=T0 - 500, lamport=600, holds=["a", "b"])
    channel.content("m", "alice", at=T0)
    channel.sync("carol", at=T0 + 1, lamport=1_001, holds=["c"])
    lose(channel, "bob")
    lose(channel, "carol", lamport=1_002, at=LACKED + 20_000)
    assert outcomes(channel) == {"lost": 1}


def test_filter_is_compared_after_an_hour_of_silence(channel: Channel) -> None:
    """As long as its owner may be active for a message that is followed."""
    channel.sync("bob", at=T0, lamport=600, holds=["a", "b"])
    t0 = T0 + 3_000_000
    channel.content("m", "alice", at=t0)
    channel.sync("bob", at=T0 + HORIZON + 120_000, lamport=1_001, holds=())
    assert outcomes(channel) == {}
