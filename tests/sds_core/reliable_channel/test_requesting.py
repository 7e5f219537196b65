"""Sync messages carry requests for repair as soon as these are due."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import Cause, MessageChannel, Profile
from sds_core.message_channel.repair import request_offset_ms
from sds_core.reliable_channel import (
    Advance,
    Arrived,
    Dispatched,
    MessageReceived,
    RateLimitOptions,
    ReliableChannelCore,
    ReliableChannelOptions,
    Restarted,
    RetrievalStrategy,
    Send,
    Start,
)
from sds_core.waku import WakuMessage
from sds_core.wire import decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.reliable_channel import (
    CHANNEL,
    OFFLINE,
    ONLINE,
    OPTIONS,
    SHARD,
    TOPIC,
    emitted,
    network,
    started,
)

ASKING = replace(OPTIONS, retrieval=RetrievalStrategy.SDS_R)
PERIOD_MS = 2 * SECOND
"""Of the messages of another participant."""

SOON_MS = int(1 + ASKING.profile.sync_requests_factor * ASKING.sync_min_interval_ms)
"""The longest time from one sync message to the next if requests are due."""

T_MAX = ASKING.profile.t_max_ms


class Speaker:
    """A participant that says something every two seconds, and names what was lost.

    Args:
        lost: How many messages the others never receive.
    """

    def __init__(self, lost: int) -> None:
        profile = replace(
            ASKING.profile, causal_history_size=ASKING.causal_history_size
        )
        self._channel = MessageChannel(
            CHANNEL, "alice", now_ms=START_MS, random=Random(1), profile=profile
        )
        self.lost = [f"lost {number}" for number in range(lost)]
        for name in self.lost:
            self._channel.send(b"tea", START_MS, message_id=name)

    def say(self, now_ms: int) -> Arrived:
        """Return its next message."""
        (broadcast,) = self._channel.send(b"busy", now_ms).broadcasts
        return Arrived(WakuMessage(broadcast.value, TOPIC, now_ms))


def requested_after_ms(
    listener: ReliableChannelCore, speaker: Speaker, *, until_ms: int = START_MS + T_MAX
) -> dict[str, int]:
    """Run a busy channel; returns how long after T_req each message is asked for."""
    found: dict[str, int] = {}
    for said_ms in range(START_MS, until_ms, PERIOD_MS):
        listener.apply(speaker.say(said_ms), said_ms)
        while (now_ms := int(listener.next_deadline_ms)) < said_ms + PERIOD_MS:
            for one in listener.apply(Advance(), now_ms).dispatches:
                listener.apply(Dispatched(one.number), now_ms)
                for asked in decode(one.message.payload).repair_request:
                    due_ms = START_MS + request_offset_ms(
                        listener.sender_id, asked.message_id, ASKING.profile
                    )
                    found.setdefault(asked.message_id, now_ms - due_ms)
    return found


@pytest.mark.rule("sds-r-sync-1", "sds-r-sync-2", "sds-r-sync-3")
def test_traffic_of_others_does_not_postpone_a_request() -> None:
    """It is sent at T_req, although others keep on sending."""
    waits_ms = []
    for number in range(20):
        speaker = Speaker(1)
        listener = started(f"bob {number}", ASKING)
        waits_ms += requested_after_ms(listener, speaker).values()
    assert len(waits_ms) == 20
    # What has been noticed as missing at the first processing is due from then on.
    assert max(waits_ms) <= SOON_MS
    assert sorted(waits_ms)[10] <= SECOND


@pytest.mark.rule("sds-r-sync-3")
def test_many_requests_are_sent_at_a_bounded_rate() -> None:
    """Three with each sync message; and none is forgotten."""
    listener = started("bob", ASKING)
    speaker = Speaker(60)
    found = requested_after_ms(listener, speaker, until_ms=START_MS + 2 * T_MAX)
    assert len(found) == 60


@pytest.mark.rule("sds-r-sync-3", "rc-sync-interval")
def test_without_missing_messages_there_are_no_more_syncs() -> None:
    """A request that is not due yet adds none either."""
    counts = []
    for lost in (0, 1):
        listener, speaker = started("bob", ASKING), Speaker(lost)
        syncs = 0
        for said_ms in range(START_MS, START_MS + 30 * SECOND, PERIOD_MS):
            listener.apply(speaker.say(said_ms), said_ms)
            while (now_ms := int(listener.next_deadline_ms)) < said_ms + PERIOD_MS:
                causes = [
                    one.cause for one in listener.apply(Advance(), now_ms).dispatches
                ]
                syncs += causes.count(Cause.SYNC)
        counts.append(syncs)
    assert counts[0] == counts[1]


def syncs_of_asking(options: ReliableChannelOptions) -> int:
    """Return how many sync messages a listener sends that lacks a message."""
    listener, speaker = started("bob", options), Speaker(1)
    listener.apply(speaker.say(START_MS), START_MS)
    syncs = 0
    while (now_ms := int(listener.next_deadline_ms)) < START_MS + 10 * MINUTE:
        causes = [one.cause for one in listener.apply(Advance(), now_ms).dispatches]
        syncs += causes.count(Cause.SYNC)
    return syncs


@pytest.mark.rule("rc-default-sync")
def test_interval_of_zero_sends_no_sync_for_requests() -> None:
    """They go with the next message."""
    assert syncs_of_asking(replace(ASKING, sync_min_interval_ms=0)) == 0
    assert syncs_of_asking(ASKING) > 0


def test_requests_wait_for_node_and_budget() -> None:
    """And do not keep the channel busy meanwhile."""
    for options, connection in (
        (ASKING, OFFLINE),
        (replace(ASKING, rate_limit=RateLimitOptions(messages_per_epoch=0)), ONLINE),
    ):
        listener, speaker = started("bob", options), Speaker(1)
        listener.apply(speaker.say(START_MS), START_MS)
        listener.apply(connection, START_MS)
        turns = 0
        while (now_ms := int(listener.next_deadline_ms)) < START_MS + 10 * MINUTE:
            assert listener.apply(Advance(), now_ms).dispatches == []
            turns += 1
        # Two sweeps every 5 s, and the sync timer.
        assert turns < 600


def test_time_of_a_request_survives_a_restart() -> None:
    """Of a state, and of a process."""
    listener, speaker = started("bob", ASKING), Speaker(1)
    listener.apply(speaker.say(START_MS), START_MS)
    listener.apply(Send(b"hi"), START_MS)
    listener.apply(Advance(), START_MS + SECOND)
    restored = ReliableChannelCore.restore(
        listener.snapshot(), pubsub_topic=SHARD, options=ASKING
    )
    assert restored.next_deadline_ms == listener.next_deadline_ms
    for one in (Restarted(), Start(), ONLINE):
        restored.apply(one, START_MS + 2 * SECOND)
    found = requested_after_ms(restored, speaker)
    assert found["lost 0"] <= SOON_MS


def test_requests_that_cannot_be_sent_wake_nobody_again_and_again() -> None:
    """While the node is offline they wait as long as any sync message."""
    profile = replace(ASKING.profile, sync_requests_factor=0)
    listener = started("bob", replace(ASKING, profile=profile))
    listener.apply(Speaker(1).say(START_MS), START_MS)
    listener.apply(OFFLINE, START_MS + 1)
    now_ms, calls = START_MS + 1, 0
    while now_ms < START_MS + 10 * MINUTE:
        now_ms = max(now_ms, int(listener.next_deadline_ms))
        listener.apply(Advance(), now_ms)
        calls += 1
    assert calls < 200


@pytest.mark.parametrize("timeout_ms", [None, 30 * MINUTE])
def test_message_is_repaired_as_long_as_it_is_requested(timeout_ms: int | None) -> None:
    """Otherwise everything after it would wait for what nobody has any more."""
    options = replace(ASKING, timeout_for_lost_messages_ms=timeout_ms)
    net = network("alice", "bob", "carol", options=options)
    net.apply("carol", Send(b"before"))
    net.run(MINUTE)
    net.disconnect("bob")
    net.apply("alice", Send(b"missed"))
    net.run(25 * MINUTE)
    net.connect("bob", has_store=False)
    net.apply("alice", Send(b"after"))
    net.run(10 * MINUTE)
    received = [one.payload for one in emitted(net, "bob", MessageReceived)]
    assert received == [b"before", b"missed", b"after"]


def test_profile_that_stores_messages_briefly_keeps_its_time() -> None:
    """That of the guide does so, whatever the channel waits for."""
    options = ReliableChannelOptions(profile=Profile.spec())
    assert options.participant_profile().repair_retention_ms == T_MAX
    options = ReliableChannelOptions(profile=Profile.js_sds())
    assert options.participant_profile().repair_retention_ms is None
    options = ReliableChannelOptions(timeout_for_lost_messages_ms=MINUTE)
    assert options.participant_profile().repair_retention_ms == 12 * MINUTE
