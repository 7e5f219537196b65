"""The verdict on a channel by its deliveries and filters (docs/figures.md, 8)."""

from __future__ import annotations

import pytest

from tests.support.channel import Channel
from tests.support.frames import START_MS
from tests.support.observer.health import WINDOW_MS, miss, saturated


def test_lost_delivery_fails_the_channel_for_a_window(channel: Channel) -> None:
    """From the clock of the frame that shows the loss."""
    lost = miss(channel)
    channel.clock(lost + 20_000)
    # A late record.
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    assert channel.verdict == ("failing", "undelivered")
    channel.content("n", "bob", at=lost + WINDOW_MS, lamport=1_003)
    channel.clock(lost + 20_000 + WINDOW_MS)
    assert channel.verdict == ("failing", "undelivered")
    channel.clock(lost + 20_000 + WINDOW_MS + 1)
    assert channel.verdict == ("ok", "ok")


def test_missing_delivery_that_is_not_lost_fails_nothing(channel: Channel) -> None:
    """It may be in transit; a frame at the deadline does not decide yet."""
    lost = miss(channel)
    channel.sync("bob", at=lost - 1, lamport=1_002, holds=())
    assert channel.verdict == ("ok", "ok")


def test_retracted_delivery_no_longer_fails_the_channel(channel: Channel) -> None:
    """It does not count as recovered either."""
    lost = miss(channel)
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    assert channel.verdict == ("failing", "undelivered")
    channel.sync("bob", at=lost + 1, lamport=1_003, holds=["m"])
    assert channel.totals.deliveries_retracted == 1
    assert channel.verdict == ("ok", "ok")


def test_one_of_two_lost_deliveries_retracted_leaves_the_other(
    channel: Channel,
) -> None:
    """Two participants lack one message: each loss is retracted separately."""
    channel.sync("carol", at=59_000, lamport=500)
    lost = miss(channel)
    for at in (70_000, 220_000):
        channel.sync("carol", at=at, lamport=1_001, holds=())
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    channel.sync("carol", at=lost, lamport=1_002, holds=())
    channel.sync("bob", at=lost + 1, lamport=1_003, holds=["m"])
    assert channel.verdict == ("failing", "undelivered")
    channel.sync("carol", at=lost + 2, lamport=1_003, holds=["m"])
    assert channel.verdict == ("ok", "ok")


def test_each_lost_delivery_leaves_the_window_alone(channel: Channel) -> None:
    """The later loss of the same message keeps the channel failing."""
    channel.sync("carol", at=59_000, lamport=500)
    lost = miss(channel)
    for at in (70_000, 220_000):
        channel.sync("carol", at=at, lamport=1_001, holds=())
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    channel.sync("carol", at=lost + 50_000, lamport=1_002, holds=())
    channel.clock(lost + WINDOW_MS + 1)
    assert channel.verdict == ("failing", "undelivered")
    channel.clock(lost + 50_000 + WINDOW_MS + 1)
    assert channel.verdict == ("quiet", "quiet")


def test_recovered_delivery_degrades_the_channel_for_a_window(
    channel: Channel,
) -> None:
    """From the frame that shows it; a later recovery restarts the window."""
    miss(channel)
    channel.sync("bob", at=240_000, lamport=1_002, holds=["m"])
    assert channel.totals.deliveries_recovered == 1
    assert channel.verdict == ("degraded", "recovering")
    channel.content("n", "alice", at=260_000, lamport=1_003)
    channel.sync("bob", at=270_000, lamport=1_004, holds=["m"])
    channel.clock(290_000)
    # A late record: it shows it now.
    channel.sync("bob", at=280_000, lamport=1_005, history=["n"], holds=["m", "n"])
    assert channel.totals.deliveries_recovered == 2
    channel.clock(290_000 + WINDOW_MS)
    assert channel.verdict == ("degraded", "recovering")
    channel.clock(290_000 + WINDOW_MS + 1)
    assert channel.verdict == ("quiet", "quiet")


@pytest.mark.parametrize(("delivered", "verdict"), [(98, "degraded"), (97, "failing")])
def test_more_than_one_percent_undelivered_fail_the_channel(
    channel: Channel, delivered: int, verdict: str
) -> None:
    """Of the deliveries that ended in the window, in whatever way."""
    lost = miss(channel)
    names = [f"p{number}" for number in range(delivered)]
    for name in names:
        channel.sync(name, at=lost - 20_000, lamport=1_001)
    channel.content("n", "alice", at=lost - 10_000, lamport=1_002)
    for name in names:
        channel.sync(name, at=lost - 5_000, lamport=1_003, history=["n"])
    channel.sync("bob", at=lost, lamport=1_004, holds=())
    channel.sync("zoe", at=lost + 1, lamport=1_005, history=["n"])
    # And one is lost: of a hundred, if 98 participants have it beside zoe.
    assert channel.totals.deliveries_first_pass == delivered + 1
    assert channel.verdict == (verdict, "undelivered")


def test_share_of_the_undelivered_is_that_of_the_window(channel: Channel) -> None:
    """Deliveries that ended before it count no more, to ten seconds."""
    for number in range(200):
        channel.sync(f"p{number}", at=60_000, lamport=500)
    channel.content("n", "alice", at=61_000, lamport=600)
    for number in range(200):
        channel.sync(f"p{number}", at=62_000, lamport=601, history=["n"])
    lost = miss(channel)
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    assert channel.verdict == ("degraded", "undelivered")
    channel.clock(62_000 + WINDOW_MS - 1)
    assert channel.verdict == ("degraded", "undelivered")
    channel.clock(70_000 + WINDOW_MS + 1)
    assert channel.verdict == ("failing", "undelivered")


def test_first_pass_changes_nothing(channel: Channel) -> None:
    """This is a normal delivery."""
    channel.sync("bob", at=59_000, lamport=500)
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, lamport=1_001, history=["m"])
    assert channel.totals.deliveries_first_pass == 1
    assert channel.verdict == ("ok", "ok")


@pytest.mark.parametrize(
    ("bits_set", "verdict"),
    [(94_643, ("quiet", "quiet")), (94_644, ("degraded", "bloom_saturated"))],
)
def test_filter_over_one_percent_degrades_the_channel(
    channel: Channel, bits_set: int, verdict: tuple[str, str]
) -> None:
    """0.01^(1/10) of 150,000 bits are 94,643.6."""
    channel.sync("bob", at=60_000, filter_=saturated(bits_set))
    assert channel.verdict == verdict


def test_saturated_filter_counts_for_a_window(channel: Channel) -> None:
    """By the event time of its frame, also without a sender."""
    channel.clock(80_000)
    channel.sync("", at=60_000, filter_=saturated(100_000))
    channel.clock(60_000 + WINDOW_MS)
    assert channel.verdict == ("degraded", "bloom_saturated")
    channel.clock(60_000 + WINDOW_MS + 1)
    assert channel.verdict == ("quiet", "quiet")


def test_filter_of_before_the_window_degrades_nothing(channel: Channel) -> None:
    """It is read late; the current filter is unknown."""
    channel.clock(60_000 + WINDOW_MS + 1)
    channel.sync("bob", at=60_000, filter_=saturated(100_000))
    assert channel.verdict == ("quiet", "quiet")
    assert channel.totals.verdict_since_ms == START_MS + 30_000


def test_newest_filter_of_each_sender_decides(channel: Channel) -> None:
    """A roll-over ends saturation; an old filter seen late is ignored."""
    channel.sync("bob", at=60_000, lamport=5, filter_=saturated(100_000))
    channel.sync("carol", at=60_000, lamport=5, filter_=saturated(100_000))
    channel.sync("bob", at=60_001, lamport=6, filter_=saturated(10))
    assert channel.verdict == ("degraded", "bloom_saturated")
    channel.sync("carol", at=60_002, lamport=6, filter_=saturated(10))
    assert channel.verdict == ("quiet", "quiet")
    channel.sync("carol", at=60_003, lamport=5, filter_=saturated(100_000))
    assert channel.verdict == ("quiet", "quiet")


def test_expired_repair_comes_before_a_saturated_filter(channel: Channel) -> None:
    """A saturated filter is the last reason to be degraded."""
    channel.sync("bob", at=60_000, requests=["x"], filter_=saturated(100_000))
    assert channel.verdict == ("degraded", "bloom_saturated")
    channel.clock(60_000 + 135_001)
    assert channel.verdict == ("degraded", "repair_expired")


def test_lost_delivery_comes_before_unacknowledged(channel: Channel) -> None:
    """Of two reasons to fail, the first is reported."""
    lost = miss(channel)
    channel.content("n", "alice", at=221_000, lamport=1_002)
    channel.sync("zoe", at=222_000, lamport=1_003, holds=())
    channel.clock(341_001)
    assert channel.verdict == ("failing", "unacknowledged")
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    assert channel.verdict == ("failing", "undelivered")
