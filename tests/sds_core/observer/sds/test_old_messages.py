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


@pytest.mark.parametrize("age_ms", AGES)
def test_rebroadcast_of_an_old_message_without_a_request_is_a_retry(
    channel: Channel, old: Frame, age_ms: int
) -> None:
    """It is no new message, so nobody has to acknowledge it."""
    channel.take(old, at=SENT + age_ms, waku_hash="second")
    channel.rest()
    totals = channel.totals
    assert (totals.messages, totals.rebroadcasts_retry) == (1, 1)
    assert totals.unwitnessed + totals.unacknowledged == 1


@pytest.mark.parametrize("age_ms", AGES)
def test_requests_in_an_old_message_count(channel: Channel, age_ms: int) -> None:
    """It is sent again as it was, with its requests."""
    frame = channel.content("m", "alice", at=SENT, requests=["x"], waku_hash="1")
    channel.take(frame, at=SENT + age_ms, waku_hash="2")
    channel.rest()
    assert (channel.totals.repair_requests, channel.totals.repair_expired) == (2, 2)


def test_old_message_that_is_named_is_not_missing(channel: Channel, old: Frame) -> None:
    """A participant that was away names what it knew last."""
    at = SENT + 3 * HOUR
    channel.content("anchor", "anna", at=at, lamport=2_000)
    channel.sync("bob", at=at + 1_000, lamport=2_001, history=["anchor", "old"])
    channel.rest()
    assert channel.totals.gaps_opened == 0


def test_ids_beyond_the_limit_are_left_out_and_counted() -> None:
    """Half of the limit at least is remembered, the newest; the rest is new again."""
    channel = Channel(ObserverSettings(remembered=4))
    sent = [
        channel.content(f"m{number}", "alice", at=number, waku_hash=f"{number}")
        for number in range(8)
    ]
    channel.clock(4 * HOUR)
    assert channel.totals.left_out == {LeftOut.OLD_ID: 6}
    for number in (7, 6, 5):
        channel.take(sent[number], at=4 * HOUR, waku_hash=f"again {number}")
    assert (channel.totals.messages, channel.totals.rebroadcasts_retry) == (9, 2)


def test_old_message_with_another_sender_is_a_collision_while_it_is_remembered(
    channel: Channel,
) -> None:
    """Afterwards only its id is known."""
    channel.content("m", "alice", at=SENT, waku_hash="1")
    channel.content("m", "bob", at=SENT + HOUR, waku_hash="2")
    assert channel.totals.message_id_collisions == 1
    channel.content("m", "bob", at=SENT + 4 * HOUR, waku_hash="3")
    assert channel.totals.message_id_collisions == 1
    assert channel.totals.rebroadcasts_retry == 1
