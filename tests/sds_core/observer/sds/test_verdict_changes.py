"""Since when a verdict holds, and when a view changes it (docs/figures.md, 8)."""

from __future__ import annotations

import pytest

from tests.support.channel import Channel
from tests.support.frames import START_MS
from tests.support.observer.health import (
    WINDOW_MS,
    lose,
    miss,
    missed_messages,
    saturated,
)

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
