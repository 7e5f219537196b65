"""Defects of the reference implementations that we do not copy, by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Acknowledged,
    Delivered,
    Ignored,
    IgnoredReason,
    IrretrievablyLost,
    Missing,
    PossiblyAcknowledged,
    Profile,
    Received,
    Retried,
    RetriesExhausted,
)
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import (
    CHANNEL,
    frame_of,
    hand_over,
    of_type,
    participant,
    receive,
    typed,
)

ALL = pytest.mark.parametrize(
    "profile",
    [Profile.spec(), Profile.js_sds(), Profile.nim_sds()],
    ids=["spec", "js", "nim"],
)


@ALL
@pytest.mark.rule("sds-message-3")
def test_identical_payload_does_not_name_itself_as_its_own_cause(
    profile: Profile,
) -> None:
    """js-waku: sent again after its acknowledgement, a payload has the same id.

    Its causal history then holds its own id, and receivers take it for a duplicate.
    """
    alice, bob = participant(profile=profile), participant("bob", profile)
    first = alice.send(b"same", START_MS)
    hand_over(first, bob)
    hand_over(bob.sync(START_MS), alice)
    assert alice.unacknowledged == ()
    second = alice.send(b"same", START_MS)
    frame = frame_of(second)
    assert frame.message_id not in {one.message_id for one in frame.causal_history}
    assert frame.message_id != frame_of(first).message_id
    (delivered,) = of_type(hand_over(second, bob), Delivered)
    assert delivered.content == b"same"


@ALL
def test_identical_payload_that_is_unacknowledged_is_a_message_too(
    profile: Profile,
) -> None:
    """js-waku takes it for a retry, so "yes" sent twice is one message."""
    alice, bob = participant(profile=profile), participant("bob", profile)
    steps = [alice.send(b"yes", START_MS) for _ in range(2)]
    events = [event for step in steps for event in hand_over(step, bob)]
    assert [one.content for one in of_type(events, Delivered)] == [b"yes", b"yes"]
    assert len(alice.unacknowledged) == 2


@ALL
def test_waiting_message_is_not_dropped_when_what_it_waits_for_is_lost(
    profile: Profile,
) -> None:
    """js-waku 0.0.8: it is never delivered, nor are those after it.

    A second copy is a duplicate there, and whatever names it loses it in turn.
    """
    frames = FrameFactory(CHANNEL, profile.dialect)
    bob = participant("bob", replace(profile, lost_after_ms=1_000, repair=False))
    waiting = frames.content("m", "alice", 5, history=["lost"])
    receive(bob, waiting)
    assert of_type(bob.sweep_incoming(START_MS + 1_000).events, Delivered) == [
        Delivered("m", "alice", 5, b"text")
    ]
    assert receive(bob, waiting) == [Ignored(IgnoredReason.DUPLICATE, "m")]
    events = receive(bob, frames.content("n", "alice", 6, history=["lost", "m"]))
    assert typed(events) == typed(
        [Received("n", "alice"), Delivered("n", "alice", 6, b"text")]
    )


@ALL
def test_giving_up_is_no_acknowledgement(profile: Profile) -> None:
    """nim-sds reports the message as sent after the last retry."""
    profile = replace(profile, sync_interval_ms=10**9, sync_least_share=None)
    alice = participant(profile=profile)
    alice.send(b"hi", START_MS, message_id="m")
    events = []
    while alice.next_deadline_ms < START_MS + 10**8:
        events += alice.advance(alice.next_deadline_ms).events
    assert typed(events) == typed(
        [
            *(Retried("m", number) for number in range(1, profile.max_retries + 1)),
            RetriesExhausted("m"),
        ]
    )
    assert alice.unacknowledged == ("m",)


@ALL
@pytest.mark.rule("sds-ack-3")
def test_one_peer_is_not_counted_twice(profile: Profile) -> None:
    """In js-waku two filters of one participant count as two participants."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    alice = participant(profile=replace(profile, possible_acks_threshold=2))
    receive(alice, frames.sync("carol"))
    alice.send(b"hi", START_MS, message_id="m")
    events = receive(
        alice,
        frames.sync("bob", holds=["m"]),
        frames.sync("bob", holds=["m"]),
        frames.content("reply", "bob", holds=["m"]),
    )
    assert of_type(events, PossiblyAcknowledged) == [
        PossiblyAcknowledged("m", "bob", 1)
    ]
    assert of_type(events, Acknowledged) == []
    assert alice.possibly_acknowledged == ("m",)


@ALL
@pytest.mark.rule("sds-missing-1")
def test_missing_message_is_not_reported_at_every_sweep(profile: Profile) -> None:
    """js-waku does, and twice if two messages wait for it."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    bob = participant("bob", profile)
    events = receive(
        bob,
        frames.content("m", "alice", history=["x"]),
        frames.content("n", "alice", history=["x"]),
    )
    assert len(of_type(events, Missing)) == 1
    later = [bob.sweep_incoming(START_MS + at).events for at in (1, 2, 3)]
    assert [of_type(events, Missing) for events in later] == [[], [], []]
    idle = participant("idle", profile)
    assert list(idle.sweep_incoming(START_MS).events) == []


@ALL
def test_lost_message_is_reported_once_if_several_wait_for_it(profile: Profile) -> None:
    """js-waku reports it for each that waits."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    bob = participant("bob", replace(profile, lost_after_ms=1_000))
    receive(
        bob,
        frames.content("m", "alice", history=["x"]),
        frames.content("n", "alice", history=["x"]),
    )
    events = bob.sweep_incoming(START_MS + 1_000).events
    assert of_type(events, IrretrievablyLost) == [IrretrievablyLost("x", b"", "")]


@ALL
def test_message_that_was_delivered_at_once_is_not_delivered_again(
    profile: Profile,
) -> None:
    """js-waku only recognises duplicates that it sent or once buffered."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    bob = participant("bob", profile)
    events = receive(bob, *[frames.content("m", "alice")] * 3)
    assert len(of_type(events, Delivered)) == 1


@ALL
def test_message_with_a_short_filter_is_delivered(profile: Profile) -> None:
    """In js-waku the reader throws, and the message is lost."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    bob = participant("bob", profile)
    bob.send(b"hi", START_MS)
    events = receive(bob, frames.content("m", "alice", filter_=b"\x01"))
    assert len(of_type(events, Delivered)) == 1


@ALL
def test_own_message_dropped_by_the_log_is_not_delivered(
    profile: Profile,
) -> None:
    """nim-sds recognises its own message only while the log has it."""
    alice = participant(profile=replace(profile, log_limit=1))
    step = alice.send(b"first", START_MS)
    alice.send(b"second", START_MS)
    assert typed(hand_over(step, alice)) == typed(
        [Ignored(IgnoredReason.OWN_ECHO, frame_of(step).message_id)]
    )
