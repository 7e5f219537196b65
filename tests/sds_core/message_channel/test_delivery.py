"""When a message is delivered, and where it stands in the log (SDS, "Deliver Message").

The log is by (lamport, message id): "Resolve Conflicts".
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Acknowledged,
    Delivered,
    Evidence,
    Ignored,
    IgnoredReason,
    LogOrder,
    MessageChannel,
    MessageIdTaken,
    Missing,
    Received,
)
from sds_core.wire import BloomFilter
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    of_type,
    participant,
    receive,
    typed,
)

FRAMES = FrameFactory(CHANNEL)


@pytest.mark.rule("sds-deliver-1")
def test_later_timestamp_is_adopted_at_delivery() -> None:
    """Not while the message waits; the next own message continues from it."""
    bob = participant("bob")
    ahead = START_MS + 70
    receive(bob, FRAMES.content("late", "alice", ahead, history=["missing"]))
    assert bob.lamport == START_MS
    receive(bob, FRAMES.content("missing", "alice", START_MS + 5))
    assert bob.lamport == ahead
    assert frame_of(bob.send(b"hi", START_MS)).lamport == ahead + 1


@pytest.mark.rule("sds-deliver-1")
@pytest.mark.parametrize("lamport", [0, START_MS - 1, START_MS])
def test_earlier_timestamp_changes_nothing(lamport: int) -> None:
    """The clock moves only forwards."""
    bob = participant("bob")
    receive(bob, FRAMES.content("old", "alice", lamport))
    assert bob.lamport == START_MS


@pytest.mark.rule("sds-deliver-2", "sds-state-1e")
def test_log_is_in_the_order_of_timestamps_however_messages_arrive() -> None:
    """Every order of arrival gives the same log."""
    messages = [
        FRAMES.content(message_id, "alice", START_MS + at)
        for message_id, at in (("d", 1), ("c", 2), ("b", 3), ("a", 4))
    ]
    for order in itertools.permutations(messages):
        bob = participant("bob")
        receive(bob, *order)
        assert bob.log == ("d", "c", "b", "a")


@pytest.mark.rule("sds-deliver-3", "sds-conflict-1")
def test_messages_of_equal_timestamps_are_in_the_order_of_their_ids() -> None:
    """Own messages too."""
    messages = [FRAMES.content(one, "alice", START_MS + 1) for one in ("a", "b", "d")]
    for order in itertools.permutations(messages):
        bob = participant("bob")
        bob.send(b"hi", START_MS, message_id="c")
        receive(bob, *order)
        assert bob.log == ("a", "b", "c", "d")


def test_log_may_be_in_the_order_of_delivery() -> None:
    """As in nim-sds."""
    profile = replace(SPEC, log_order=LogOrder.ARRIVAL, log_limit=3)
    bob = participant("bob", profile)
    receive(bob, FRAMES.content("b", "alice", 9), FRAMES.content("a", "alice", 9))
    bob.send(b"hi", START_MS, message_id="c")
    receive(bob, FRAMES.content("d", "alice", 1))
    assert bob.log == ("a", "c", "d")


def test_full_log_drops_its_first_message_in_order() -> None:
    """That is the oldest message, not the first that arrived."""
    bob = participant("bob", replace(SPEC, log_limit=3))
    receive(
        bob,
        *(
            FRAMES.content(one, "alice", at)
            for one, at in zip("abcd", (7, 5, 8, 6), strict=True)
        ),
    )
    assert bob.log == ("d", "a", "c")


OLD = 5
"""Lamport timestamp of messages that come before those of a full log."""


def full(*, log_limit: int = 2, messages: int = 2) -> MessageChannel:
    """Return bob, who has delivered so many messages of alice, and sent one."""
    bob = participant("bob", replace(SPEC, log_limit=log_limit))
    bob.send(b"hi", START_MS, message_id="ours")
    first = bob.lamport + 1
    receive(
        bob, *(FRAMES.content(f"m{n}", "alice", first + n) for n in range(messages))
    )
    return bob


@pytest.mark.rule("sds-receive-6", "sds-receive-4", "sds-receive-3")
@pytest.mark.parametrize("messages", [2, 3])
def test_message_older_than_a_full_log_is_delivered(messages: int) -> None:
    """While all that was ever received is remembered, it is new."""
    bob = full(messages=messages)
    before = bob.log
    frame = FRAMES.content("old", "carol", OLD, history=["ours"])
    assert typed(receive(bob, frame)) == typed(
        [
            Received("old", "carol"),
            Acknowledged("ours", "carol", Evidence.CAUSAL_HISTORY),
            Delivered("old", "carol", OLD, b"text"),
        ]
    )
    assert bob.log == before
    assert holds(bob, "old")
    again = MessageChannel.restore(
        bob.snapshot(), random=Random(1), profile=bob.profile
    )
    for one in (bob, again):
        assert typed(receive(one, frame)) == typed(
            [Ignored(IgnoredReason.DUPLICATE, "old")]
        )


@pytest.mark.rule("sds-receive-6", "sds-receive-4", "sds-receive-3")
def test_message_older_than_all_that_is_remembered_still_acknowledges() -> None:
    """It may have been delivered before, so it is not delivered; an event says so."""
    bob = full(messages=6)
    bob.record_changes()
    before = bob.snapshot()
    frame = FRAMES.content("old", "carol", OLD, history=["ours"])
    assert typed(receive(bob, frame)) == typed(
        [
            Ignored(IgnoredReason.OLDER_THAN_LOG, "old"),
            Acknowledged("ours", "carol", Evidence.CAUSAL_HISTORY),
        ]
    )
    assert bob.unacknowledged == ()
    assert holds(bob, "old")
    again = MessageChannel.restore(
        before, changes=bob.take_changes(), random=Random(1), profile=bob.profile
    )
    assert again.unacknowledged == ()
    assert holds(again, "old")


@pytest.mark.rule("sds-receive-6")
def test_message_between_those_forgotten_and_those_remembered_is_delivered() -> None:
    """Only what is older than something forgotten may be a second copy."""
    bob = full(messages=6)
    # m5 and m4 are in the log; m3 and m2 were dropped from it, m1 is forgotten.
    first = bob.lamport - 5
    for one, at, is_new in (("a", first + 1, False), ("z", first + 1, True)):
        frame = FRAMES.content(one, "carol", at)
        delivered = of_type(receive(bob, frame), Delivered)
        assert len(delivered) == is_new, one


def test_repeated_old_message_fills_no_filter() -> None:
    """Once it is in, it is not counted again towards the roll-over."""
    profile = replace(SPEC, log_limit=1, bloom_rollover_ids=4, bloom_kept_ids=2)
    bob = participant("bob", profile)
    receive(bob, *(FRAMES.content(f"m{n}", "alice", 10 + n) for n in range(3)))
    receive(bob, *[FRAMES.content("0", "alice", OLD)] * 9)
    assert holds(bob, "m1")


def holds(channel: MessageChannel, message_id: str) -> bool:
    """Whether the filter of the next sync message holds an id."""
    frame = frame_of(channel.sync(START_MS))
    received = BloomFilter.from_wire(
        frame.dialect, frame.bloom_filter, channel.profile.bloom
    )
    return received.contains(message_id)


ORDERS = pytest.mark.parametrize("order", list(LogOrder))


@ORDERS
def test_copy_of_a_dropped_message_is_not_delivered_again(
    order: LogOrder,
) -> None:
    """Its id is remembered, also after a restart."""
    profile = replace(SPEC, log_order=order, log_limit=2)
    bob = participant("bob", profile)
    messages = [FRAMES.content(one, "alice", at) for at, one in enumerate("abcd")]
    receive(bob, *messages)
    assert bob.log == ("c", "d")
    duplicates = [Ignored(IgnoredReason.DUPLICATE, one) for one in "abcd"]
    again = MessageChannel.restore(bob.snapshot(), random=Random(1), profile=profile)
    for one in (bob, again):
        before = one.snapshot()
        assert typed(receive(one, *messages)) == typed(duplicates)
        assert one.snapshot() == before


@ORDERS
def test_id_of_a_dropped_own_message_cannot_be_reused(order: LogOrder) -> None:
    """No other message can be sent with it."""
    bob = participant("bob", replace(SPEC, log_order=order, log_limit=1))
    bob.send(b"hi", START_MS, message_id="a")
    bob.send(b"hi", START_MS, message_id="b")
    assert bob.log == ("b",)
    with pytest.raises(MessageIdTaken):
        bob.send(b"other", START_MS, message_id="a")


@ORDERS
def test_dropped_messages_are_remembered_up_to_a_limit(
    order: LogOrder,
) -> None:
    """Older ones are missing when they are named again."""
    bob = participant("bob", replace(SPEC, log_order=order, log_limit=2))
    receive(bob, *(FRAMES.content(one, "alice", at) for at, one in enumerate("abcde")))
    events = receive(bob, FRAMES.sync("alice", history=["a", "b", "c", "d", "e"]))
    assert [event.message_id for event in of_type(events, Missing)] == ["a"]


def test_missing_message_older_than_a_full_log_is_delivered() -> None:
    """It was never delivered, and others wait for it."""
    bob = participant("bob", replace(SPEC, log_limit=2))
    receive(bob, FRAMES.content("a", "alice", 5), FRAMES.content("m", "alice", 6))
    receive(bob, FRAMES.content("z", "alice", 7, history=["x"]))
    events = receive(bob, FRAMES.content("x", "alice", 1))
    assert [event.message_id for event in of_type(events, Delivered)] == ["x", "z"]
    assert bob.waiting == bob.missing == ()


def test_log_in_the_order_of_delivery_takes_old_messages_too() -> None:
    """Timestamps do not decide places there."""
    profile = replace(SPEC, log_order=LogOrder.ARRIVAL, log_limit=1)
    bob = participant("bob", profile)
    receive(bob, FRAMES.content("b", "alice", 9), FRAMES.content("a", "alice", 1))
    assert bob.log == ("a",)


@pytest.mark.rule("sds-incoming-1", "sds-incoming-4", "sds-sdk-task-3")
def test_arrival_delivers_all_messages_that_waited_for_it() -> None:
    """A whole chain at once, dependencies first."""
    bob = participant("bob")
    receive(
        bob,
        FRAMES.content("d", "alice", START_MS + 4, history=["c"]),
        FRAMES.content("c", "alice", START_MS + 3, history=["b"]),
        FRAMES.content("b", "alice", START_MS + 2, history=["a"]),
    )
    assert bob.waiting == ("d", "c", "b")
    events = receive(bob, FRAMES.content("a", "alice", START_MS + 1))
    assert [event.message_id for event in of_type(events, Delivered)] == list("abcd")
    assert bob.log == tuple("abcd")
    assert bob.waiting == bob.missing == ()


def test_messages_freed_together_are_delivered_in_the_order_of_the_log() -> None:
    """By timestamp, then id; one freed later is inserted in its place."""
    bob = participant("bob")
    receive(
        bob,
        FRAMES.content("z", "alice", START_MS + 9, history=["x"]),
        FRAMES.content("c", "alice", START_MS + 5, history=["x"]),
        FRAMES.content("b", "alice", START_MS + 5, history=["x"]),
        FRAMES.content("e", "alice", START_MS + 7, history=["b"]),
    )
    events = receive(bob, FRAMES.content("x", "alice", START_MS + 1))
    assert typed(events) == typed(
        [
            Received("x", "alice"),
            Delivered("x", "alice", START_MS + 1, b"text"),
            Delivered("b", "alice", START_MS + 5, b"text"),
            Delivered("c", "alice", START_MS + 5, b"text"),
            Delivered("e", "alice", START_MS + 7, b"text"),
            Delivered("z", "alice", START_MS + 9, b"text"),
        ]
    )


@pytest.mark.rule("sds-receive-5")
def test_waiting_message_meets_no_dependency() -> None:
    """Only the log does, so nothing is delivered before its dependencies."""
    bob = participant("bob")
    receive(bob, FRAMES.content("b", "alice", 2, history=["a"]))
    events = receive(bob, FRAMES.content("c", "alice", 3, history=["b"]))
    # It is not missing either: it is here.
    assert typed(events) == typed([Received("c", "alice")])
    assert bob.waiting == ("b", "c")


def test_message_waits_for_all_of_its_dependencies() -> None:
    """The arrival of the last one delivers it."""
    bob = participant("bob")
    receive(bob, FRAMES.content("m", "alice", 9, history=["a", "b"]))
    receive(bob, FRAMES.content("b", "alice", 2))
    assert bob.waiting == ("m",)
    assert [one.message_id for one in bob.missing] == ["a"]
    receive(bob, FRAMES.content("a", "alice", 1))
    assert bob.log == ("a", "b", "m")


def test_several_messages_may_wait_for_one() -> None:
    """It is missing once and frees each that has no other dependency."""
    bob = participant("bob")
    events = receive(
        bob,
        FRAMES.content("m", "alice", 8, history=["a"]),
        FRAMES.content("n", "alice", 9, history=["a", "b"]),
    )
    assert of_type(events, Missing) == [
        Missing("a", b"", "", "m"),
        Missing("b", b"", "", "n"),
    ]
    receive(bob, FRAMES.content("a", "alice", 1))
    assert bob.log == ("a", "m")
    assert bob.waiting == ("n",)


@pytest.mark.parametrize("length", [2_000])
def test_chain_of_any_length_is_delivered(length: int) -> None:
    """No recursion limits it."""
    bob = participant("bob", replace(SPEC, incoming_limit=length, repair=False))
    for number in range(length, 0, -1):
        receive(
            bob,
            FRAMES.content(
                f"m{number}", "alice", START_MS + number, history=[f"m{number - 1}"]
            ),
        )
    events = receive(bob, FRAMES.content("m0", "alice", START_MS))
    assert [event.message_id for event in of_type(events, Delivered)] == [
        f"m{number}" for number in range(length + 1)
    ]


@pytest.mark.parametrize(("ahead_ms", "adopted"), [(60_000, True), (60_001, False)])
def test_limit_of_adoption_holds_at_reception(ahead_ms: int, adopted: bool) -> None:
    """By the clock at that moment; a message beyond it has no effect."""
    bob = participant("bob", replace(SPEC, lamport_max_ahead_ms=60_000))
    now_ms = START_MS + 10_000
    lamport = now_ms + ahead_ms
    before = bob.snapshot(now_ms)
    events = receive(bob, FRAMES.content("m", "alice", lamport), now_ms=now_ms)
    if adopted:
        assert typed(events) == typed(
            [Received("m", "alice"), Delivered("m", "alice", lamport, b"text")]
        )
        assert bob.lamport == lamport
        assert bob.log == ("m",)
    else:
        detail = f"lamport timestamp {lamport}"
        assert typed(events) == typed([Ignored(IgnoredReason.FAR_FUTURE, "m", detail)])
        assert bob.snapshot() == before


def test_message_too_far_ahead_is_accepted_later() -> None:
    """It was not stored, so a retry or repair is no duplicate."""
    bob = participant("bob", replace(SPEC, lamport_max_ahead_ms=60_000))
    frame = FRAMES.content("m", "alice", START_MS + 60_001)
    assert of_type(receive(bob, frame), Delivered) == []
    assert of_type(receive(bob, frame, now_ms=START_MS + 1), Delivered)


def test_old_content_does_not_bring_back_what_was_forgotten() -> None:
    """Its dependencies were delivered before; copies of them are not, again."""
    bob = participant("bob", profile=replace(SPEC, log_limit=2))
    early = [
        FRAMES.content(f"m{number}", "alice", START_MS + 10 * number)
        for number in range(6)
    ]
    for one in early:
        receive(bob, one)
    late = FRAMES.content("late", "carol", START_MS + 15, history=["m0", "m1"])
    assert [one.message_id for one in of_type(receive(bob, late), Delivered)] == [
        "late"
    ]
    assert bob.missing == ()
    for one in early[:2]:
        assert of_type(receive(bob, one), Delivered) == []
