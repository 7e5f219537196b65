"""Ids of sync frames, which nim-sds names and repairs (docs/figures.md, 2 and 6)."""

from __future__ import annotations

import pytest

from sds_core.wire import Dialect, Frame
from tests.support.channel import START_LAMPORT, Channel

HOUR = 3_600_000
AT = 60_000


@pytest.fixture
def channel() -> Channel:
    """A channel of nim-sds that has warmed up and knows `anchor`, at 60 s."""
    channel = Channel.after_warm_up(dialect=Dialect.NIM)
    channel.content("anchor", "anna", at=AT, lamport=START_LAMPORT + 1)
    return channel


@pytest.fixture
def sync(channel: Channel) -> Frame:
    """The first copy of a sync frame by sue, at 61 s."""
    return channel.sync("sue", at=AT + 1_000, lamport=START_LAMPORT + 2)


@pytest.mark.parametrize("later_ms", [1_000, HOUR - 1_000])
def test_sync_frame_that_a_tap_showed_is_not_missing(
    channel: Channel, sync: Frame, later_ms: int
) -> None:
    """Whatever its kind, what was seen is no gap."""
    at = AT + 1_000 + later_ms
    channel.content("new", "anna", at=at, lamport=START_LAMPORT + 3)
    channel.sync("bob", at=at, lamport=200, history=["new", sync.message_id])
    channel.rest()
    assert channel.totals.gaps_opened == 0


def test_forgotten_sync_frame_that_is_repaired_is_a_rebroadcast(
    channel: Channel, sync: Frame
) -> None:
    """It was named, and is requested hours later."""
    channel.sync("bob", at=AT + 2_000, lamport=200, history=[sync.message_id])
    at = AT + 5 * HOUR
    channel.sync("bob", at, lamport=300, requests=[sync.message_id])
    channel.take(sync, at=at + 1_000)
    totals = channel.totals
    assert (totals.repair_answered, totals.rebroadcasts_repair) == (1, 1)


def test_sync_frame_fills_the_gap_that_waits_for_it(channel: Channel) -> None:
    """The tap missed it first, and saw it as it was repaired."""
    sync = channel.frames.sync("sue", START_LAMPORT + 2)
    history = ["anchor", sync.message_id]
    channel.sync("bob", at=AT + 1_000, lamport=200, history=history)
    channel.sync("bob", at=AT + 5_000, lamport=201, requests=[sync.message_id])
    channel.take(sync, at=AT + 9_000)
    channel.rest()
    totals = channel.totals
    assert (totals.gaps_opened, totals.gaps_repaired, totals.gaps_lost) == (1, 1, 0)
    assert (totals.repair_answered, totals.repair_expired) == (1, 0)


def test_lost_sync_frame_that_arrives_is_retracted(channel: Channel) -> None:
    """And the verdict forgets it."""
    sync = channel.frames.sync("sue", START_LAMPORT + 2)
    history = ["anchor", (sync.message_id, "bob")]
    channel.sync("bob", at=AT + 1_000, lamport=200, history=history)
    channel.clock(AT + 302_000)
    assert channel.verdict == ("failing", "lost")
    channel.take(sync, at=AT + 303_000)
    assert (channel.totals.gaps_lost, channel.totals.gaps_retracted) == (1, 1)
    assert channel.verdict != ("failing", "lost")


def test_repeated_sync_frame_is_a_rebroadcast(channel: Channel, sync: Frame) -> None:
    """It answers requests, and proves nothing about what its sender has now."""
    channel.content("m", "anna", at=AT + 3_000, lamport=START_LAMPORT + 2)
    channel.sync("bob", at=AT + 9_000, lamport=200, requests=[sync.message_id])
    channel.take(sync, at=AT + 20_000, waku_hash="repair")
    channel.take(sync, at=AT + HOUR // 2, waku_hash="retry")
    totals = channel.totals
    assert (totals.rebroadcasts_repair, totals.rebroadcasts_retry) == (1, 1)
    assert (totals.repair_answered, totals.repair_redundant) == (1, 0)
    assert totals.frames["sync.nim"] == 5


def test_other_sync_frame_with_the_same_id_is_a_first_copy(channel: Channel) -> None:
    """Ids of sync frames need not be distinct."""
    for number in (2, 3):
        frame = channel.frames.sync("sue", START_LAMPORT + number, message_id="sync")
        channel.take(frame, at=AT + number * 10_000)
    assert channel.totals.rebroadcasts_retry == 0


def test_sync_frame_after_the_start_proves_what_stands_behind_it(
    channel: Channel, sync: Frame
) -> None:
    """It has a Lamport timestamp, as a content message has."""
    channel.sync("bob", at=AT + 9_000, lamport=200, history=[sync.message_id, "x"])
    channel.clock(AT + 12_000)
    assert channel.totals.gaps_opened == 1


def test_sync_frame_named_before_it_was_seen_shows_no_lack(channel: Channel) -> None:
    """It was composed long before."""
    channel.sync("sue", at=AT, lamport=START_LAMPORT, holds=["anchor"])
    channel.content("m", "anna", at=AT + 1_000, lamport=START_LAMPORT + 2)
    old = channel.frames.sync("sue", START_LAMPORT + 3, holds=["anchor"])
    channel.sync("bob", at=AT + 2_000, lamport=200, history=["anchor", old.message_id])
    channel.take(old, at=AT + 30_000)
    channel.sync("sue", at=AT + 40_000, lamport=201, holds=["anchor", "m"])
    totals = channel.totals
    assert (totals.deliveries_first_pass, totals.deliveries_recovered) == (1, 0)
