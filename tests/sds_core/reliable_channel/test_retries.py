"""Retries: at a fixed interval, up to the maximum, and never while offline."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from sds_core.message_channel import Cause
from sds_core.reliable_channel import (
    Advance,
    ChunkInfo,
    Dispatched,
    DispatchFailed,
    LimitReached,
    Limits,
    MessageAcknowledged,
    MessageSent,
    RetriesExhausted,
    Send,
    SendingMessage,
)
from sds_core.wire import decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.reliable_channel import (
    OFFLINE,
    ONLINE,
    OPTIONS,
    causes,
    emitted,
    network,
    of_kind,
    sent,
    started,
)

NO_SYNC = replace(OPTIONS, sync_min_interval_ms=0)
INTERVAL_MS = OPTIONS.retry_interval_ms


@pytest.mark.rule(
    "rc-retry-interval",
    "rc-events-sending-again",
    "rc-events-sent-again",
    "rc-chunks-again",
    "rc-retry-timer",
    "rc-retry-stop-max",
)
@pytest.mark.rule("rc-default-retry-interval", "rc-default-max-retry", "rc-retry-max")
@pytest.mark.rule("rc-retry-configurable", "rc-sds-tasks-1c", "rc-retry-fixed")
def test_message_is_sent_again_every_interval_up_to_the_maximum() -> None:
    """Ten retries 30 s apart by default; giving up is an event of its own."""
    net = network("alice", options=NO_SYNC)
    message_id = net.apply("alice", Send(b"tea")).message_id
    net.run(20 * MINUTE)
    times = [one.at_ms - START_MS for one in sent(net)]
    gaps = {later - earlier for earlier, later in pairwise(times)}
    assert len(times) == 1 + 10
    # The interval begins when the network has accepted the message, 1 ms later.
    assert gaps == {30 * SECOND + 1}
    one = ChunkInfo((0,), 1)
    assert emitted(net, "alice", RetriesExhausted) == [
        RetriesExhausted(message_id, one)
    ]
    assert emitted(net, "alice", MessageAcknowledged) == []
    # Events of a retry have the cumulative chunks again.
    assert emitted(net, "alice", SendingMessage) == [
        SendingMessage(message_id, one)
    ] * len(times)
    assert len(emitted(net, "alice", MessageSent)) == len(times)


@pytest.mark.rule("rc-retry-configurable", "rc-retry-max")
def test_interval_and_maximum_are_options() -> None:
    """Two retries, 7 s apart."""
    options = replace(NO_SYNC, retry_interval_ms=7 * SECOND, max_retry_attempts=2)
    net = network("alice", options=options)
    net.apply("alice", Send(b"tea"))
    net.run(20 * MINUTE)
    times = [one.at_ms - START_MS for one in sent(net)]
    assert times == [0, 7 * SECOND + 1, 14 * SECOND + 2]


def test_retry_is_the_same_frame_in_a_new_waku_message() -> None:
    """A relay that knows the hash of the first would drop it."""
    net = network("alice", options=NO_SYNC)
    net.apply("alice", Send(b"tea"))
    net.run(INTERVAL_MS + SECOND)
    first, retry = sent(net)
    assert first.dispatch.message.payload == retry.dispatch.message.payload
    assert first.dispatch.message_hash != retry.dispatch.message_hash


@pytest.mark.rule("rc-retry-stop-ack")
def test_acknowledged_message_is_not_sent_again() -> None:
    """One that nobody received is sent until somebody has it."""
    net = network("alice", "bob", options=NO_SYNC)
    net.losses.append(lambda one, _: one.by == "alice" and len(sent(net)) <= 3)
    net.apply("alice", Send(b"tea"))
    net.run(95 * SECOND)
    net.apply("bob", Send(b"thanks"))
    net.run(20 * MINUTE)
    assert len([one for one in sent(net) if one.by == "alice"]) == 4
    assert len(emitted(net, "alice", MessageAcknowledged)) == 1
    assert emitted(net, "alice", RetriesExhausted) == []


@pytest.mark.rule("rc-retry-stop-max", "rc-events-acknowledged", "rc-retry-max")
def test_late_acknowledgement_after_giving_up_is_reported() -> None:
    """Giving up only ends the sending."""
    net = network("alice", "bob", options=replace(NO_SYNC, max_retry_attempts=0))
    message_id = net.apply("alice", Send(b"tea")).message_id
    net.run(2 * INTERVAL_MS)
    assert len(emitted(net, "alice", RetriesExhausted)) == 1
    net.apply("bob", Send(b"thanks"))
    net.run(MINUTE)
    one = ChunkInfo((0,), 1)
    assert emitted(net, "alice", MessageAcknowledged) == [
        MessageAcknowledged(message_id, one)
    ]


@pytest.mark.rule("rc-retry-offline")
def test_time_offline_costs_no_attempt() -> None:
    """After an hour offline there are as many retries left as before."""
    alice = started(options=NO_SYNC)
    (dispatch,) = alice.apply(Send(b"tea"), START_MS).dispatches
    alice.apply(Dispatched(dispatch.number), START_MS)
    assert causes(alice, 65 * SECOND) == [Cause.RETRY] * 2
    alice.apply(OFFLINE, START_MS + 70 * SECOND)
    hour_ms = START_MS + 60 * MINUTE
    assert causes(alice, 60 * MINUTE) == []
    output = alice.apply(ONLINE, hour_ms)
    assert [one.cause for one in output.dispatches] == [Cause.RETRY]
    alice.apply(Dispatched(output.dispatches[0].number), hour_ms)
    assert len(causes(alice, 20 * MINUTE, hour_ms)) == 7


@pytest.mark.rule("rc-retry-offline")
def test_message_sent_while_offline_waits() -> None:
    """It is dispatched when the node is online, and its interval begins then."""
    alice = started(options=NO_SYNC)
    alice.apply(OFFLINE, START_MS)
    assert alice.apply(Send(b"tea"), START_MS).dispatches == []
    later_ms = START_MS + 10 * MINUTE
    alice.apply(Advance(), later_ms)
    (dispatch,) = alice.apply(ONLINE, later_ms).dispatches
    assert dispatch.cause is Cause.CONTENT
    # Stores refuse a message whose time is far off.
    assert dispatch.message.timestamp_ns == later_ms * 1_000_000


@pytest.mark.rule("rc-retry-interval")
def test_failed_sending_is_tried_again_after_the_interval() -> None:
    """There is no event of a sent message."""
    alice = started(options=NO_SYNC)
    (dispatch,) = alice.apply(Send(b"tea"), START_MS).dispatches
    assert alice.apply(DispatchFailed(dispatch.number), START_MS).events == []
    assert alice.apply(Advance(), START_MS + INTERVAL_MS - 1).dispatches == []
    (retry,) = alice.apply(Advance(), START_MS + INTERVAL_MS).dispatches
    assert (
        decode(retry.message.payload).content
        == decode(dispatch.message.payload).content
    )


@pytest.mark.rule("rc-limit-1b")
@pytest.mark.parametrize("limits", [Limits(retries=1), Limits(retries_bytes=1_000)])
def test_oldest_retry_goes_if_there_are_too_many(limits: Limits) -> None:
    """By number or by bytes; the application hears that it was given up."""
    alice = started(options=replace(NO_SYNC, limits=limits))
    first = alice.apply(Send(bytes(400)), START_MS).message_id
    events = alice.apply(Send(bytes(400)), START_MS).events
    assert [one.message_id for one in of_kind(events, RetriesExhausted)] == [first]
    assert [one.limit for one in of_kind(events, LimitReached)] == ["retries"]


def test_participant_gives_up_no_message_that_the_limits_allow() -> None:
    """The channel's limits count, not those of the participant's profile."""
    profile = replace(OPTIONS.profile, outgoing_limit=1, outgoing_bytes_limit=262_144)
    alice = started(options=replace(NO_SYNC, profile=profile))
    for _ in range(4):
        events = alice.apply(Send(bytes(90_000)), START_MS).events
        assert not of_kind(events, RetriesExhausted)
