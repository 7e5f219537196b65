"""The verdict on a channel by its messages, gaps and repairs (docs/figures.md, 8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.observer.settings import DEFAULTS
from sds_core.wire import Dialect
from tests.support.channel import START_LAMPORT, START_MS, Channel
from tests.support.observer.health import WINDOW_MS, lose, missed_messages


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


@pytest.mark.parametrize("dialect", Dialect)
def test_expired_repair_began_at_its_request_or_earlier(dialect: Dialect) -> None:
    """Whichever dialect has the longer repair window."""
    window_ms = 1_000_000
    settings = replace(DEFAULTS, **{f"repair_window_{dialect.value}_ms": window_ms})
    channel = Channel.after_warm_up(settings, dialect)
    channel.sync("bob", at=1_000_000, requests=["m"])
    channel.clock(1_000_000 + window_ms + 1)
    assert channel.totals.evidence is not None
    ((began_ms, _, _),) = channel.totals.evidence.expired
    assert began_ms <= START_MS + 1_000_000


def test_unacknowledged_comes_before_an_expired_repair(channel: Channel) -> None:
    """Both degrade; the order of reasons decides."""
    deadline = missed_messages(channel, 20, 1)
    channel.sync("bob", at=61_000, requests=["x"])
    channel.clock(deadline + 100_000)
    assert channel.totals.repair_expired == 1
    assert channel.verdict == ("degraded", "unacknowledged")


def test_channel_without_names_of_senders_says_what_cannot_be_seen() -> None:
    """Nobody can be seen to acknowledge, so `ok` alone would say too much."""
    channel = Channel()
    channel.content("a", "", at=0)
    channel.content("b", "", at=40_000)
    assert channel.verdict == ("ok", "no_senders")
    channel.content("c", "anna", at=41_000)
    assert channel.verdict == ("ok", "ok")
    channel.content("d", "", at=600_000)
    channel.clock(641_001)
    assert channel.verdict == ("ok", "no_senders")
    channel.clock(1_200_001)
    assert channel.verdict == ("quiet", "quiet")
