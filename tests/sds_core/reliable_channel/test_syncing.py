"""Sync messages: random times, multipliers, and an end to postponement."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

import pytest

from sds_core.message_channel import Cause
from sds_core.reliable_channel import (
    Advance,
    Arrived,
    Dispatched,
    DispatchFailed,
    MessageAcknowledged,
    ReliableChannelCore,
    ReliableChannelOptions,
    Send,
    Start,
    Stop,
    SyncMultipliers,
)
from sds_core.reliable_channel.sync_timer import ChannelSyncTimer
from sds_core.wire import FrameKind, decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.reliable_channel import (
    CHANNEL,
    OFFLINE,
    ONLINE,
    OPTIONS,
    SHARD,
    TOPIC,
    causes,
    emitted,
    network,
    sent,
    started,
)

INTERVAL_MS = OPTIONS.sync_min_interval_ms


class Highest(Random):
    """Draws nearly 1 each time."""

    def random(self) -> float:
        """Return the greatest value."""
        return 1 - 2**-53


@pytest.mark.rule("rc-sync-periodic", "rc-sync-interval", "rc-default-sync")
def test_time_to_the_next_sync_is_random_within_the_interval() -> None:
    """Over the whole interval, and no longer."""
    timer = ChannelSyncTimer(INTERVAL_MS, 0.3, Random(1))
    drawn = []
    for _ in range(200):
        timer.restart(1.0, START_MS)
        drawn.append(timer.next_ms - START_MS)
    assert 0 < min(drawn) < 0.05 * INTERVAL_MS
    assert 0.95 * INTERVAL_MS < max(drawn) <= INTERVAL_MS


@pytest.mark.rule(
    "rc-sync-received", "rc-map-1d", "rc-sync-sent", "rc-sync-sync", "rc-sync-failed"
)
def test_multipliers_are_those_of_the_document() -> None:
    """0.5 after received content, 2 after a failure, else 1."""
    given = SyncMultipliers()
    assert given.content_received == 0.5
    assert given.content_sent == given.sync_received == given.sync_sent == 1.0
    assert given.sync_failed == 2.0
    assert ReliableChannelOptions.js_waku().sync_multipliers.sync_sent == 2.0


def longest_ms(restarts: str, multiplier: float) -> float:
    """Time to the next sync after something happened, if the greatest is drawn."""
    timer = ChannelSyncTimer(INTERVAL_MS, 0.3, Highest())
    timer.restart(2.0, START_MS)
    getattr(timer, restarts)(multiplier, START_MS)
    return timer.next_ms - START_MS


@pytest.mark.rule("rc-sync-received", "rc-sync-sent", "rc-sync-sync")
@pytest.mark.parametrize(
    ("restarts", "multiplier"),
    [("put_off", 0.5), ("put_off", 1.0), ("restart", 1.0), ("restart", 2.0)],
)
def test_multiplier_scales_the_time(restarts: str, multiplier: float) -> None:
    """To the millisecond."""
    assert longest_ms(restarts, multiplier) == INTERVAL_MS * multiplier


def speaker() -> ReliableChannelCore:
    """Return a channel that draws the longest times and has sent one message."""
    made = ReliableChannelCore(
        CHANNEL,
        "alice",
        TOPIC,
        pubsub_topic=SHARD,
        now_ms=START_MS,
        random=Highest(),
        options=OPTIONS,
    )
    for event in (Start(), ONLINE):
        made.apply(event, START_MS)
    say(made, b"tea", START_MS)
    return made


def say(alone: ReliableChannelCore, payload: bytes, now_ms: int) -> None:
    """Have a channel send a message, which the network accepts."""
    (dispatch,) = alone.apply(Send(payload), now_ms).dispatches
    alone.apply(Dispatched(dispatch.number), now_ms)


def first_sync_ms(alone: ReliableChannelCore) -> float:
    """Run a channel until it sends a sync message; returns after which time."""
    while (now_ms := int(alone.next_deadline_ms)) < START_MS + 10 * MINUTE:
        dispatches = alone.apply(Advance(), now_ms).dispatches
        if Cause.SYNC in [one.cause for one in dispatches]:
            return now_ms - START_MS
    return inf


@pytest.mark.rule("rc-sync-sent")
def test_content_of_ours_puts_the_sync_off_for_an_interval() -> None:
    """From its sending on."""
    alice = speaker()
    say(alice, b"more", START_MS + 10 * SECOND)
    assert first_sync_ms(alice) == 10 * SECOND + INTERVAL_MS


@pytest.mark.rule("rc-sync-sent")
@pytest.mark.parametrize("payload", [b"", b"refused by the network"])
def test_failed_sends_do_not_put_the_sync_off(payload: bytes) -> None:
    """Those that are refused at once, and those that the network does not accept."""
    alice = speaker()
    found = []
    for now_ms in range(START_MS, START_MS + INTERVAL_MS + 1, SECOND):
        for one in alice.apply(Send(payload), now_ms).dispatches:
            found.append(one.cause)
            alice.apply(DispatchFailed(one.number), now_ms)
    assert found.count(Cause.SYNC) == 1


@pytest.mark.rule("rc-sync-received", "rc-map-1d")
def test_received_content_has_the_sync_come_sooner() -> None:
    """After half an interval at most."""
    alice = speaker()
    (dispatch,) = started("bob").apply(Send(b"thanks"), START_MS).dispatches
    alice.apply(Arrived(dispatch.message), START_MS + SECOND)
    assert first_sync_ms(alice) == SECOND + INTERVAL_MS / 2


@pytest.mark.rule("rc-sync-failed")
def test_sync_that_is_due_offline_waits_for_two_intervals() -> None:
    """Although the node is online again soon."""
    alice = speaker()
    alice.apply(OFFLINE, START_MS)
    alice.apply(Advance(), START_MS + INTERVAL_MS)
    alice.apply(ONLINE, START_MS + INTERVAL_MS + SECOND)
    assert first_sync_ms(alice) == 3 * INTERVAL_MS


@pytest.mark.rule("rc-sync-interval")
def test_traffic_of_others_does_not_put_a_sync_off_for_ever() -> None:
    """A listener of one steady speaker would never acknowledge anything."""
    timer = ChannelSyncTimer(INTERVAL_MS, 0.3, Highest())
    timer.restart(1.0, START_MS)
    now_ms = START_MS
    while timer.next_ms > now_ms:
        now_ms += SECOND
        timer.put_off(0.5, now_ms)
    assert now_ms - START_MS == 2 * INTERVAL_MS


@pytest.mark.rule("rc-start")
def test_channel_that_is_started_again_syncs() -> None:
    """Within one interval, although nothing else happens."""
    alice = started(options=replace(OPTIONS, max_retry_attempts=0))
    alice.apply(Send(b"tea"), START_MS)
    alice.apply(Stop(), START_MS)
    alice.apply(Start(), START_MS)
    alice.apply(ONLINE, START_MS)
    assert Cause.SYNC in causes(alice, INTERVAL_MS + SECOND)


@pytest.mark.rule("rc-default-sync")
def test_interval_of_zero_sends_no_sync() -> None:
    """Although there is something to say."""
    alice = started(options=replace(OPTIONS, sync_min_interval_ms=0))
    alice.apply(Send(b"tea"), START_MS)
    assert Cause.SYNC not in causes(alice, 60 * MINUTE)


@pytest.mark.rule(
    "rc-sync-periodic",
    "rc-sync-content",
    "rc-sync-acknowledges",
    "rc-arch-acks",
    "rc-sync-active",
)
def test_listener_acknowledges_by_sync_messages() -> None:
    """They have no content, and the speaker's messages are acknowledged in time."""
    net = network("alice", "bob")
    for number in range(30):
        net.apply("alice", Send(b"message %d" % number))
        net.run(10 * SECOND)
    net.run(2 * MINUTE)
    assert len(emitted(net, "alice", MessageAcknowledged)) == 30
    syncs = [one for one in sent(net, Cause.SYNC) if one.by == "bob"]
    assert len(syncs) >= 5
    for one in syncs:
        frame = decode(one.dispatch.message.payload)
        assert frame.kind is FrameKind.SYNC
        assert frame.causal_history


@pytest.mark.rule("rc-sync-sync", "rc-sync-state")
def test_participants_share_the_sync_messages() -> None:
    """A sync message of another puts ours off: together they send few."""
    names = ("alice", "bob", "carol", "dave", "erin")
    net = network(*names)
    net.apply("alice", Send(b"tea"))
    net.run(MINUTE)
    before = len(sent(net, Cause.SYNC))
    net.run(60 * MINUTE)
    syncs = len(sent(net, Cause.SYNC)) - before
    # One alone would wait for half the interval on average.
    alone = 60 * MINUTE / (INTERVAL_MS / 2)
    assert syncs < 0.75 * len(names) * alone


@pytest.mark.rule("rc-sync-failed")
def test_sync_that_cannot_be_sent_waits_longer() -> None:
    """Up to twice the interval; many attempts show that it is drawn from that."""
    alice = started()
    alice.apply(Send(b"tea"), START_MS)
    waits_ms = []
    failed_ms = None
    end_ms = START_MS + 400 * MINUTE
    while (at_ms := int(alice.next_deadline_ms)) < end_ms:
        for dispatch in alice.apply(Advance(), at_ms).dispatches:
            if dispatch.cause is Cause.SYNC:
                if failed_ms is not None:
                    waits_ms.append(at_ms - failed_ms)
                failed_ms = at_ms
            alice.apply(DispatchFailed(dispatch.number), at_ms)
    assert max(waits_ms) > 1.9 * INTERVAL_MS
    assert max(waits_ms) <= 2 * INTERVAL_MS


def test_offline_node_sends_no_sync() -> None:
    """It would wait, and be out of date."""
    alice = started()
    alice.apply(Send(b"tea"), START_MS)
    alice.apply(OFFLINE, START_MS)
    assert causes(alice, 10 * MINUTE) == []
    output = alice.apply(ONLINE, START_MS + 10 * MINUTE)
    assert Cause.SYNC not in [one.cause for one in output.dispatches]
