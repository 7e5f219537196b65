"""The verdict on a channel, its reason, and when it changes (docs/figures.md, 8)."""

from __future__ import annotations

import pytest

from tests.support.channel import START_LAMPORT, Channel
from tests.support.frames import START_MS, bloom

WINDOW_MS = 600_000


@pytest.fixture
def channel() -> Channel:
    """A channel that has warmed up, at 60 s."""
    return Channel.after_warm_up()


def missed_messages(channel: Channel, messages: int, missed: int) -> int:
    """Messages at 60 s, some of them never acknowledged; returns their deadline."""
    for number in range(messages):
        channel.content(f"m{number}", "alice", at=60_000, lamport=1_000 + number)
    named = [f"m{number}" for number in range(missed, messages)]
    channel.sync("bob", at=61_000, lamport=9_000, history=named)
    return 180_000


def lose(channel: Channel) -> int:
    """Message `x` of sue is lost; returns its deadline."""
    channel.content("anchor", "anna", at=60_000, lamport=START_LAMPORT + 1)
    channel.sync("sue", at=60_000, history=["anchor", ("x", "sue")])
    return 360_000


# Each verdict, and the moment at which it begins and ends.


def test_new_channel_is_warming_up_for_thirty_seconds() -> None:
    """From its first record; at exactly 30 s the warm-up is over."""
    channel = Channel()
    channel.content("m", "alice", at=5_000)
    assert channel.verdict == ("warming_up", "warming_up")
    channel.clock(34_999)
    assert channel.verdict == ("warming_up", "warming_up")
    channel.clock(35_000)
    assert channel.verdict == ("ok", "ok")


def test_end_of_the_warm_up_wakes_the_view() -> None:
    """The view has a deadline at the end of the warm-up."""
    channel = Channel()
    channel.sync("alice", at=5_000)
    channel.clock(20_000)  # A minute ends.
    assert channel.wake() + 1 == 35_000
    assert channel.verdict == ("quiet", "quiet")


def test_warm_up_takes_precedence() -> None:
    """It takes precedence over every other verdict."""
    channel = Channel()
    channel.sync("alice", at=0)
    channel.sync("bob", at=20_000, requests=["x"])
    channel.clock(29_999)
    assert channel.verdict == ("warming_up", "warming_up")


def test_channel_without_content_is_quiet(channel: Channel) -> None:
    """Sync and ephemeral frames are not content."""
    channel.sync("bob", at=61_000)
    channel.ephemeral("bob", at=61_000)
    assert channel.verdict == ("quiet", "quiet")


def test_channel_is_quiet_after_a_window_without_content(channel: Channel) -> None:
    """Content at the window's edge still counts."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, history=["m"])
    channel.clock(60_000 + WINDOW_MS)
    assert channel.verdict == ("ok", "ok")
    channel.clock(60_000 + WINDOW_MS + 1)
    assert channel.verdict == ("quiet", "quiet")


def test_replicas_are_no_content(channel: Channel) -> None:
    """A copy from a second tap long after does not count as content."""
    frame = channel.content("m", "alice", at=60_000, waku_hash="1")
    channel.take(frame, at=700_000, waku_hash="1")
    assert channel.verdict == ("quiet", "quiet")


def test_rebroadcasts_are_content(channel: Channel) -> None:
    """They are sent content."""
    frame = channel.content("m", "alice", at=60_000, waku_hash="1")
    channel.take(frame, at=700_000, waku_hash="2")
    assert channel.verdict == ("ok", "ok")


def test_loss_fails_the_channel_for_a_window(channel: Channel) -> None:
    """From the gap's deadline until it leaves the window."""
    deadline = lose(channel)
    channel.clock(deadline)
    assert channel.verdict == ("degraded", "recovering")
    channel.clock(deadline + 1)
    assert channel.verdict == ("failing", "lost")
    channel.clock(deadline + WINDOW_MS)
    assert channel.verdict == ("failing", "lost")
    channel.clock(deadline + WINDOW_MS + 1)
    assert channel.verdict == ("quiet", "quiet")


def test_retracted_loss_no_longer_fails_the_channel(channel: Channel) -> None:
    """The message arrived after all."""
    deadline = lose(channel)
    channel.content("x", "sue", at=deadline + 1_000, lamport=START_LAMPORT + 2)
    assert channel.totals.gaps_lost == 1
    assert channel.verdict == ("ok", "ok")


def test_one_of_two_losses_retracted_leaves_the_other(channel: Channel) -> None:
    """Each loss is retracted separately."""
    deadline = lose(channel)
    channel.sync("sue", at=60_000, history=["anchor", ("y", "sue")])
    channel.content("x", "sue", at=deadline + 1_000, lamport=START_LAMPORT + 2)
    assert channel.verdict == ("failing", "lost")


def test_tap_gap_fails_nothing(channel: Channel) -> None:
    """The network had the message."""
    deadline = lose(channel)
    channel.sync("bob", at=70_000, history=["x"])
    channel.clock(deadline + 1)
    assert channel.totals.gaps_tap_gap == 1
    assert channel.verdict == ("ok", "ok")


def test_loss_comes_before_unacknowledged(channel: Channel) -> None:
    """Of two reasons to fail, the first is reported."""
    deadline = lose(channel)
    missed_messages(channel, 1, 1)
    channel.clock(deadline + 1)
    assert channel.totals.unacknowledged >= 1
    assert channel.verdict == ("failing", "lost")


@pytest.mark.parametrize(
    ("messages", "missed", "verdict"),
    [(20, 0, "ok"), (20, 1, "degraded"), (19, 1, "failing"), (1, 1, "failing")],
)
def test_more_than_five_percent_unacknowledged_fail_the_channel(
    channel: Channel, messages: int, missed: int, verdict: str
) -> None:
    """At exactly 5 % it is only degraded."""
    deadline = missed_messages(channel, messages, missed)
    channel.clock(deadline)
    assert channel.verdict == ("ok", "ok")
    channel.clock(deadline + 1)
    assert channel.totals.unacknowledged == missed
    assert channel.verdict == (verdict, "unacknowledged" if missed else "ok")


def test_unwitnessed_messages_fail_nothing(channel: Channel) -> None:
    """No other participant could have acknowledged them."""
    channel.content("m", "alice", at=60_000)
    channel.clock(180_001)
    assert channel.totals.unwitnessed == 1
    assert channel.verdict == ("ok", "ok")


def test_unwitnessed_messages_are_among_those_whose_deadline_fell(
    channel: Channel,
) -> None:
    """They count in the total: one unacknowledged of twenty is 5 %."""
    channel.content("m", "alice", at=60_000, lamport=1_000)
    channel.sync("bob", at=60_001, lamport=1_001)
    for number in range(19):
        channel.content(f"n{number}", "alice", at=60_002, lamport=1_002 + number)
    channel.clock(190_000)
    assert (channel.totals.unacknowledged, channel.totals.unwitnessed) == (1, 19)
    assert channel.verdict == ("degraded", "unacknowledged")


def test_unacknowledged_message_counts_for_a_window_from_its_deadline(
    channel: Channel,
) -> None:
    """Rounded up to the second."""
    deadline = missed_messages(channel, 1, 1)
    channel.content("late", "bob", at=700_000, lamport=9_001)
    channel.clock(deadline + WINDOW_MS)
    assert channel.verdict == ("failing", "unacknowledged")
    channel.clock(deadline + WINDOW_MS + 1)
    assert channel.verdict == ("ok", "ok")


def test_share_is_that_of_the_window_alone(channel: Channel) -> None:
    """Messages whose deadline was before the window do not count."""
    for number in range(30):
        channel.content(f"m{number}", "alice", at=60_000, lamport=1_000 + number)
    named = [f"m{number}" for number in range(30)]
    channel.sync("bob", at=60_000, lamport=9_000, history=named)
    channel.content("n", "alice", at=120_000, lamport=9_001)
    channel.sync("bob", at=121_000, lamport=9_002)
    channel.clock(240_001)
    assert channel.verdict == ("degraded", "unacknowledged")
    channel.clock(180_000 + WINDOW_MS)
    assert channel.verdict == ("degraded", "unacknowledged")
    channel.clock(180_000 + WINDOW_MS + 1)
    assert channel.verdict == ("failing", "unacknowledged")


def test_open_gap_degrades_the_channel(channel: Channel) -> None:
    """From the end of the settle time until the message arrives."""
    lose(channel)
    channel.clock(62_000)
    assert channel.verdict == ("ok", "ok")
    channel.clock(62_001)
    assert channel.verdict == ("degraded", "recovering")
    channel.content("x", "sue", at=70_000, lamport=START_LAMPORT + 2)
    assert channel.verdict == ("ok", "ok")


def test_open_gap_comes_before_a_few_unacknowledged(channel: Channel) -> None:
    """Of two reasons to be degraded, the first is reported."""
    deadline = missed_messages(channel, 40, 1)
    channel.sync("sue", at=deadline - 10_000, history=["m39", ("x", "sue")])
    channel.clock(deadline + 1)
    assert channel.totals.unacknowledged == 1
    assert channel.verdict == ("degraded", "recovering")


def test_many_unacknowledged_come_before_an_open_gap(channel: Channel) -> None:
    """Failing takes precedence over degraded."""
    deadline = missed_messages(channel, 2, 1)
    channel.sync("sue", at=deadline - 10_000, history=["m1", ("x", "sue")])
    channel.clock(deadline + 1)
    assert channel.totals.gaps_open == 1
    assert channel.verdict == ("failing", "unacknowledged")


def test_expired_repair_degrades_the_channel_for_a_window(channel: Channel) -> None:
    """From the end of the repair window on."""
    channel.sync("bob", at=70_000, requests=["x"])
    channel.content("m", "alice", at=500_000)
    expired = 70_000 + 135_000
    channel.clock(expired + WINDOW_MS)
    assert channel.verdict == ("degraded", "repair_expired")
    channel.clock(expired + WINDOW_MS + 1)
    assert channel.verdict == ("ok", "ok")


def test_repair_expires_in_the_verdict_when_its_window_ends(channel: Channel) -> None:
    """At the window's end it is pending; a millisecond later it is expired."""
    channel.sync("bob", at=70_000, requests=["x"])
    channel.clock(205_000)
    assert channel.verdict == ("quiet", "quiet")
    channel.clock(205_001)
    assert channel.verdict == ("degraded", "repair_expired")


def test_newest_expiry_counts(channel: Channel) -> None:
    """A later expiry restarts the window."""
    channel.sync("bob", at=70_000, requests=["x"])
    channel.sync("bob", at=400_000, requests=["y"])
    channel.clock(70_000 + 135_000 + WINDOW_MS + 1)
    assert channel.verdict == ("degraded", "repair_expired")
    channel.clock(400_000 + 135_000 + WINDOW_MS + 1)
    assert channel.verdict == ("quiet", "quiet")


def test_unacknowledged_comes_before_an_expired_repair(channel: Channel) -> None:
    """Both degrade; the order of reasons decides."""
    deadline = missed_messages(channel, 20, 1)
    channel.sync("bob", at=61_000, requests=["x"])
    channel.clock(deadline + 100_000)
    assert channel.totals.repair_expired == 1
    assert channel.verdict == ("degraded", "unacknowledged")


# Deliveries and filters.


def miss(channel: Channel) -> int:
    """Bob lacks `m` of alice; returns the time after which it would be lost."""
    channel.sync("bob", at=59_000, lamport=500)
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=70_000, lamport=1_001, holds=())
    return 360_001


def saturated(bits_set: int) -> bytes:
    """A filter whose rate is over 1 %: from 94,644 set bits on."""
    return bloom(bits_set=bits_set)


def test_lost_delivery_fails_the_channel_for_a_window(channel: Channel) -> None:
    """From the clock of the frame that shows the loss."""
    lost = miss(channel)
    channel.clock(lost + 20_000)
    # A late record.
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    assert channel.verdict == ("failing", "lost")
    channel.content("n", "bob", at=lost + WINDOW_MS, lamport=1_003)
    channel.clock(lost + 20_000 + WINDOW_MS)
    assert channel.verdict == ("failing", "lost")
    channel.clock(lost + 20_000 + WINDOW_MS + 1)
    assert channel.verdict == ("ok", "ok")


def test_missing_delivery_that_is_not_lost_fails_nothing(channel: Channel) -> None:
    """It may be in transit; a frame at the deadline does not decide yet."""
    lost = miss(channel)
    channel.sync("carol", at=80_000, lamport=1_001, history=["m"])
    channel.sync("bob", at=lost - 1, lamport=1_002, holds=())
    assert channel.verdict == ("ok", "ok")


def test_retracted_delivery_no_longer_fails_the_channel(channel: Channel) -> None:
    """It does not count as recovered either."""
    lost = miss(channel)
    channel.sync("carol", at=80_000, lamport=1_001, history=["m"])
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    assert channel.verdict == ("failing", "lost")
    channel.sync("bob", at=lost + 1, lamport=1_003, holds=["m"])
    assert channel.totals.deliveries_retracted == 1
    assert channel.verdict == ("ok", "ok")


def test_one_of_two_lost_deliveries_retracted_leaves_the_other(
    channel: Channel,
) -> None:
    """Two participants lack one message: each loss is retracted separately."""
    channel.sync("carol", at=59_000, lamport=500)
    lost = miss(channel)
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    channel.sync("carol", at=lost, lamport=1_002, holds=())
    channel.sync("bob", at=lost + 1, lamport=1_003, holds=["m"])
    assert channel.verdict == ("failing", "lost")
    channel.sync("carol", at=lost + 2, lamport=1_003, holds=["m"])
    assert channel.verdict == ("failing", "unacknowledged")


def test_each_lost_delivery_leaves_the_window_alone(channel: Channel) -> None:
    """The later loss of the same message keeps the channel failing."""
    channel.sync("carol", at=59_000, lamport=500)
    lost = miss(channel)
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    channel.sync("carol", at=lost + 50_000, lamport=1_002, holds=())
    channel.clock(lost + WINDOW_MS + 1)
    assert channel.verdict == ("failing", "lost")
    channel.clock(lost + 50_000 + WINDOW_MS + 1)
    assert channel.verdict == ("quiet", "quiet")


def test_recovered_delivery_degrades_the_channel_for_a_window(
    channel: Channel,
) -> None:
    """From the frame that shows it; a later recovery restarts the window."""
    miss(channel)
    channel.sync("bob", at=80_000, lamport=1_002, holds=["m"])
    assert channel.totals.deliveries_recovered == 1
    assert channel.verdict == ("degraded", "recovering")
    channel.content("n", "alice", at=100_000, lamport=1_003)
    channel.sync("bob", at=110_000, lamport=1_004, holds=["m"])
    channel.clock(130_000)
    # A late record: it shows it now.
    channel.sync("bob", at=120_000, lamport=1_005, history=["n"], holds=["m", "n"])
    assert channel.totals.deliveries_recovered == 2
    channel.clock(130_000 + WINDOW_MS)
    assert channel.verdict == ("degraded", "recovering")
    channel.clock(130_000 + WINDOW_MS + 1)
    assert channel.verdict == ("quiet", "quiet")


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
    channel.clock(180_001)
    assert channel.verdict == ("failing", "unacknowledged")
    channel.sync("bob", at=lost, lamport=1_002, holds=())
    assert channel.verdict == ("failing", "lost")


# Since when.


def since(channel: Channel) -> int:
    """When the verdict began, in the time of the records."""
    since_ms = channel.totals.verdict_since_ms
    assert since_ms is not None
    return since_ms - START_MS


def test_verdict_of_no_records_has_not_begun() -> None:
    """A channel begins with its first record."""
    channel = Channel()
    channel.clock(50_000)
    assert channel.totals.verdict_since_ms is None
    channel.sync("bob", at=70_000)
    assert since(channel) == 70_000


@pytest.mark.parametrize("clock_ms", [35_000, 400_000])
def test_verdict_after_the_warm_up_began_at_its_end(clock_ms: int) -> None:
    """Also if the view is called later."""
    channel = Channel()
    channel.sync("bob", at=5_000)
    channel.clock(34_999)
    assert since(channel) == 5_000
    channel.clock(clock_ms)
    assert since(channel) == 35_000


def test_verdict_begins_at_the_clock_of_the_frame_that_changes_it(
    channel: Channel,
) -> None:
    """A late record changes it when it is read."""
    assert since(channel) == 30_000
    channel.clock(90_000)
    channel.content("m", "alice", at=70_000)
    assert channel.verdict == ("ok", "ok")
    assert since(channel) == 90_000


def test_verdict_begins_just_after_the_deadline_that_changes_it(
    channel: Channel,
) -> None:
    """It does not wait for the next record or the end of the batch."""
    deadline = lose(channel)
    channel.clock(deadline + 123_456)
    assert channel.verdict == ("failing", "lost")
    assert since(channel) == deadline + 1


def test_verdict_begins_just_after_the_window(channel: Channel) -> None:
    """When the last event that caused the previous verdict leaves the window."""
    channel.content("m", "alice", at=60_000)
    channel.clock(60_000 + WINDOW_MS + 123_456)
    assert channel.verdict == ("quiet", "quiet")
    assert since(channel) == 60_000 + WINDOW_MS + 1


def test_verdict_that_changed_twice_meanwhile_began_at_the_second(
    channel: Channel,
) -> None:
    """Every change is found, although the view was not called between."""
    channel.sync("bob", at=70_000, requests=["x"])
    channel.content("m", "alice", at=100_000)
    channel.clock(2_000_000)
    # ok, degraded from 205,001, quiet when the expiry has left the window.
    assert channel.verdict == ("quiet", "quiet")
    assert since(channel) == 70_000 + 135_000 + WINDOW_MS + 1


def test_another_reason_is_not_another_verdict(channel: Channel) -> None:
    """It is degraded all the time."""
    channel.sync("bob", at=60_000, requests=["x"], filter_=saturated(100_000))
    channel.clock(60_000 + 135_001)
    assert channel.verdict == ("degraded", "repair_expired")
    assert since(channel) == 60_000


def test_verdict_that_comes_back_began_when_it_came_back(channel: Channel) -> None:
    """An earlier period of the same verdict does not count."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, lamport=5, filter_=saturated(100_000))
    assert since(channel) == 61_000
    channel.sync("bob", at=62_000, lamport=6, filter_=saturated(10))
    assert channel.verdict == ("ok", "ok")
    assert since(channel) == 62_000


def test_verdict_that_holds_again_at_once_has_not_changed(channel: Channel) -> None:
    """Content arrives when the last content leaves the window: ok all the time."""
    channel.content("m", "alice", at=60_000)
    channel.content("n", "alice", at=60_000 + WINDOW_MS, lamport=1_001)
    channel.clock(60_000 + WINDOW_MS + 1)
    assert channel.verdict == ("ok", "ok")
    assert since(channel) == 60_000


# The clock alone.


@pytest.mark.parametrize(
    "scenario",
    [
        "loss",
        "missed",
        "expired",
        "quiet",
        "share",
        "undelivered",
        "recovered",
        "saturated",
    ],
)
def test_view_called_only_at_its_deadlines_changes_its_verdict_in_time(
    scenario: str,
) -> None:
    """Called at its deadlines only, it equals a view called every second."""

    def begin() -> Channel:
        channel = Channel.after_warm_up()
        if scenario == "loss":
            lose(channel)
        elif scenario == "missed":
            missed_messages(channel, 20, 1)
        elif scenario == "expired":
            channel.sync("bob", at=60_000, requests=["x"])
        elif scenario == "quiet":
            missed_messages(channel, 3, 0)
        elif scenario == "undelivered":
            channel.sync("bob", at=miss(channel), lamport=1_002, holds=())
        elif scenario == "recovered":
            miss(channel)
            channel.sync("bob", at=90_000, lamport=1_002, history=["m"], holds=())
        elif scenario == "saturated":
            channel.sync("bob", at=90_000, filter_=saturated(100_000))
        else:
            missed_messages(channel, 30, 0)
            channel.content("n", "alice", at=120_000, lamport=9_001)
            channel.sync("bob", at=121_000, lamport=9_002)
        return channel

    woken, watched = begin(), begin()
    changes = {}
    while (deadline := woken.next_deadline_ms) is not None:
        before = woken.verdict
        assert woken.wake() == deadline
        if woken.verdict != before:
            changes[deadline + 1] = (before, woken.verdict)
    assert changes
    for moment, (before, after) in changes.items():
        watched.clock(moment - 1)
        assert watched.verdict == before
        watched.clock(moment)
        assert watched.verdict == after
    assert watched.verdict == woken.verdict == ("quiet", "quiet")
