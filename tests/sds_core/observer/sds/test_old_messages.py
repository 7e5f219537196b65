"""Messages older than the horizon that are repaired (docs/figures.md, 2 and 7)."""

from __future__ import annotations

import pytest

from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Frame
from tests.support.channel import Channel

HOUR = 3_600_000
SENT = 60_000

AGES = [HOUR + 1, 3 * HOUR, 30 * HOUR]
"""Within the time for which a message is remembered since it was named, and beyond."""


@pytest.fixture
def channel() -> Channel:
    """A channel that has warmed up, at 60 s."""
    return Channel.after_warm_up()


@pytest.fixture
def old(channel: Channel) -> Frame:
    """The first copy of message `old`, at 60 s."""
    return channel.content("old", "alice", at=SENT, waku_hash="first")


@pytest.mark.parametrize("age_ms", AGES)
def test_rebroadcast_of_an_old_message_answers_its_request(
    channel: Channel, old: Frame, age_ms: int
) -> None:
    """A participant that was away for hours asks for it, and gets it."""
    at = SENT + age_ms
    channel.sync("bob", at, requests=["old"])
    channel.take(old, at=at + 10_000, waku_hash="second")
    channel.take(old, at=at + 12_000, waku_hash="third")
    channel.rest()
    totals = channel.totals
    assert (totals.repair_requests, totals.repair_answered) == (1, 1)
    assert (totals.repair_expired, totals.repair_redundant) == (0, 1)
    assert totals.repair_response.sum_ms == 10_000
    assert totals.rebroadcasts_repair == 2
    assert totals.messages == 1


def test_rebroadcast_of_an_old_message_without_a_request_is_a_retry(
    channel: Channel, old: Frame
) -> None:
    """It is no new message, so nobody has to acknowledge it."""
    channel.take(old, at=SENT + HOUR + 1, waku_hash="second")
    channel.rest()
    totals = channel.totals
    assert (totals.messages, totals.rebroadcasts_retry) == (1, 1)
    assert totals.unwitnessed + totals.unacknowledged == 1


def test_message_that_came_back_stays_known(channel: Channel, old: Frame) -> None:
    """It was requested, so it is no new message afterwards either."""
    at = SENT + 5 * HOUR
    channel.sync("bob", at, requests=["old"])
    channel.take(old, at=at + 1_000, waku_hash="second")
    channel.take(old, at=at + HOUR // 2, waku_hash="third")
    channel.content("anchor", "anna", at=at + HOUR // 2, lamport=2_000)
    channel.sync("bob", at=at + HOUR // 2, lamport=2_001, history=["anchor", "old"])
    channel.rest()
    totals = channel.totals
    assert (totals.rebroadcasts_repair, totals.rebroadcasts_retry) == (1, 1)
    assert (totals.messages, totals.gaps_opened) == (2, 0)


@pytest.mark.parametrize(("sender", "lamport"), [("alice", 1_001), ("carol", 1_000)])
def test_requested_message_that_cannot_be_forgotten_is_new(
    channel: Channel, sender: str, lamport: int
) -> None:
    """All that was forgotten of the sender is older, or there is nothing."""
    channel.content("old", "alice", at=SENT, lamport=1_000)
    at = SENT + 5 * HOUR
    channel.sync("bob", at, requests=["new"])
    channel.content("new", sender, at=at + 1_000, lamport=lamport)
    assert (channel.totals.messages, channel.totals.repair_answered) == (2, 1)


def test_gap_that_is_filled_late_is_a_new_message(channel: Channel) -> None:
    """It is known that no tap has shown it."""
    channel.content("last", "alice", at=SENT, lamport=2_000)
    at = SENT + 5 * HOUR
    channel.content("anchor", "anna", at=at, lamport=3_000)
    channel.sync("bob", at, lamport=3_001, history=["anchor", "x"])
    channel.sync("bob", at=at + 3_000, lamport=3_002, requests=["x"])
    channel.content("x", "alice", at=at + 4_000, lamport=1_000)
    assert (channel.totals.messages, channel.totals.gaps_repaired) == (3, 1)


def test_forged_lamport_timestamp_makes_no_new_message_an_old_one(
    channel: Channel,
) -> None:
    """A forged frame has the highest Lamport timestamp; alice goes on below it."""
    channel.content("forged", "alice", at=SENT, lamport=2**60)
    at = SENT + 5 * HOUR
    channel.content("new", "alice", at=at, lamport=2_000)
    assert (channel.totals.messages, channel.totals.rebroadcasts_retry) == (2, 0)


@pytest.mark.parametrize("age_ms", AGES)
def test_requests_in_an_old_message_count(channel: Channel, age_ms: int) -> None:
    """It is sent again as it was, with its requests."""
    frame = channel.content("m", "alice", at=SENT, requests=["x"], waku_hash="1")
    channel.take(frame, at=SENT + age_ms, waku_hash="2")
    channel.rest()
    assert (channel.totals.repair_requests, channel.totals.repair_expired) == (2, 2)


@pytest.mark.parametrize("named_until_ms", [0, 3 * HOUR])
def test_forgotten_message_that_is_named_is_not_missing(
    channel: Channel, old: Frame, named_until_ms: int
) -> None:
    """Of a participant that was away, behind a message that is still named or not."""
    channel.content("later", "anna", at=SENT + 1_000, lamport=1_001)
    for at in range(0, named_until_ms, HOUR // 2):
        channel.sync("eve", at=SENT + 2_000 + at, lamport=1_002 + at, history=["old"])
    history = ["old", "later"]
    channel.sync("bob", at=SENT + 3 * HOUR, lamport=2_001, history=history)
    channel.rest()
    assert channel.totals.gaps_opened == 0


def test_gap_behind_a_message_of_hours_ago_opens_if_nothing_is_forgotten_since(
    channel: Channel,
) -> None:
    """A channel with few messages is watched as well."""
    channel.content("first", "anna", at=SENT, lamport=1_000)
    channel.sync("bob", at=SENT + HOUR - 1, lamport=1_001, history=["first"])
    at = SENT + HOUR + HOUR // 2
    channel.sync("bob", at, lamport=1_002, history=["first", "missed"])
    channel.clock(at + 2_001)
    assert channel.totals.gaps_opened == 1


def test_old_message_with_another_sender_is_a_collision_while_it_is_remembered(
    channel: Channel,
) -> None:
    """Afterwards it is a new message."""
    channel.content("m", "alice", at=SENT, waku_hash="1")
    channel.content("m", "bob", at=SENT + HOUR, waku_hash="2")
    assert (channel.totals.message_id_collisions, channel.totals.messages) == (1, 1)
    channel.content("m", "bob", at=SENT + 4 * HOUR, waku_hash="3")
    assert (channel.totals.message_id_collisions, channel.totals.messages) == (1, 2)


def test_senders_beyond_the_limit_are_left_out_and_counted() -> None:
    """What they sent, forgotten and requested, is a new message if it returns."""
    channel = Channel(ObserverSettings(followed=1))
    for sender in ("alice", "bob"):
        channel.content(sender, sender, at=SENT)
    left_out = channel.totals.left_out.get(LeftOut.PARTICIPANT, 0)
    channel.clock(4 * HOUR)
    assert channel.totals.left_out[LeftOut.PARTICIPANT] == left_out + 1
