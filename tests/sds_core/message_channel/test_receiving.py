"""What happens to a received frame (SDS, "Receive Message")."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Acknowledged,
    Delivered,
    EphemeralReceived,
    Event,
    Evidence,
    Ignored,
    IgnoredReason,
    MessageChannel,
    Missing,
    Received,
    Step,
    SyncReceived,
)
from sds_core.wire import BloomFilter, Dialect, Frame, decode
from tests.support.frames import START_MS, FrameFactory, value_of
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    hand_over,
    of_type,
    participant,
    receive,
    typed,
)

FRAMES = FrameFactory(CHANNEL)


@pytest.mark.rule(
    "sds-receive-6", "sds-event-1a", "sds-event-1b", "sds-schedule-1", "sds-sdk-waku-2"
)
def test_message_with_met_dependencies_is_delivered_at_once() -> None:
    """The application gets content and sender."""
    bob = participant("bob")
    step = participant().send(b"hi", START_MS, message_id="one")
    assert typed(hand_over(step, bob)) == typed(
        [
            Received("one", "alice"),
            Delivered("one", "alice", START_MS + 1, b"hi"),
        ]
    )
    assert bob.log == ("one",)


@pytest.mark.rule("sds-receive-5", "sds-receive-7", "sds-state-1d", "sds-event-1c")
def test_message_with_unmet_dependencies_waits() -> None:
    """It is received, not delivered, and its missing dependencies are listed."""
    bob = participant("bob")
    receive(bob, FRAMES.content("known", "alice"))
    events = receive(
        bob,
        FRAMES.content("late", "alice", history=["b", "known", ("a", "carol"), "b"]),
    )
    assert typed(events) == typed(
        [
            Received("late", "alice"),
            Missing("b", b"", "", "late"),
            Missing("a", b"", "carol", "late"),
        ]
    )
    assert bob.waiting == ("late",)
    assert [one.message_id for one in bob.missing] == ["b", "a"]
    assert bob.log == ("known",)


@pytest.mark.rule("sds-receive-1")
@pytest.mark.parametrize("kind", ["content", "sync", "ephemeral"])
def test_own_message_that_comes_back_is_ignored(kind: str) -> None:
    """It changes nothing, whatever its fields say."""
    alice = participant()
    alice.send(b"hi", START_MS, message_id="one")
    before = alice.snapshot()
    frame = {
        "content": FRAMES.content("x", "alice", START_MS + 99, history=["one", "y"]),
        "sync": FRAMES.sync("alice", message_id="x", history=["one"]),
        "ephemeral": FRAMES.ephemeral("alice", message_id="x"),
    }[kind]
    events = receive(alice, frame)
    assert typed(events) == typed([Ignored(IgnoredReason.OWN_ECHO, "x")])
    assert alice.snapshot() == before


@pytest.mark.rule("sds-receive-2", "sds-event-4")
def test_message_that_was_received_before_is_ignored() -> None:
    """Whether delivered, waiting, or our own under another sender's name."""
    bob = participant("bob")
    bob.send(b"hi", START_MS, message_id="ours")
    frames = [
        FRAMES.content("delivered", "alice"),
        FRAMES.content("waiting", "alice", history=["missing"]),
    ]
    receive(bob, *frames)
    before = bob.snapshot()
    frames.append(FRAMES.content("ours", "mallory", history=["ours"]))
    assert typed(receive(bob, *frames)) == typed(
        [
            Ignored(IgnoredReason.DUPLICATE, "delivered"),
            Ignored(IgnoredReason.DUPLICATE, "waiting"),
            Ignored(IgnoredReason.DUPLICATE, "ours"),
        ]
    )
    assert bob.snapshot() == before


def test_frame_of_another_channel_is_ignored() -> None:
    """The event has the start of that channel's name."""
    alice = participant()
    before = alice.snapshot()
    frame = FrameFactory("r" * 100).content("one", "bob")
    assert typed(receive(alice, frame)) == typed(
        [Ignored(IgnoredReason.FOREIGN_CHANNEL, "one", "r" * 80)]
    )
    assert alice.snapshot() == before


def test_frame_of_the_other_dialect_is_ignored() -> None:
    """Its timestamps and filters have another meaning."""
    alice = participant()
    before = alice.snapshot()
    frame = FRAMES.content("one", "bob", dialect=Dialect.NIM)
    assert typed(receive(alice, frame)) == typed(
        [Ignored(IgnoredReason.FOREIGN_DIALECT, "one", "nim")]
    )
    assert alice.snapshot() == before


@pytest.mark.rule("sds-receive-4")
def test_received_ids_enter_the_filter_whether_delivered_or_not() -> None:
    """So the sender learns that its message arrived, even if it waits."""
    bob = participant("bob")
    receive(
        bob,
        FRAMES.content("delivered", "alice"),
        FRAMES.content("waiting", "alice", history=["missing"]),
    )
    wire = frame_of(bob.send(b"hi", START_MS)).bloom_filter
    filter_ = BloomFilter.from_wire(Dialect.SPEC, wire)
    assert [filter_.contains(one) for one in ("delivered", "waiting", "missing")] == [
        True,
        True,
        False,
    ]


@pytest.mark.rule("sds-receive-3")
def test_message_is_reviewed_for_acknowledgements_even_if_it_must_wait() -> None:
    """Its sender's receptions do not depend on ours."""
    alice = participant()
    alice.send(b"hi", START_MS, message_id="one")
    events = receive(alice, FRAMES.content("late", "bob", history=["missing", "one"]))
    assert typed(events) == typed(
        [
            Received("late", "bob"),
            Acknowledged("one", "bob", Evidence.CAUSAL_HISTORY),
            Missing("missing", b"", "", "late"),
        ]
    )


def test_hint_of_a_message_survives_its_wait() -> None:
    """It is in histories that name the message."""
    bob = participant("bob")
    late = FRAMES.content("late", "alice", START_MS + 9, history=["missing"])
    bob.receive(value_of(late), START_MS, retrieval_hint=b"hint")
    receive(bob, FRAMES.content("missing", "alice"))
    history = frame_of(bob.send(b"hi", START_MS)).causal_history
    assert [(one.message_id, one.retrieval_hint) for one in history] == [
        ("missing", b""),
        ("late", b"hint"),
    ]


def test_decoded_frame_has_the_same_effect() -> None:
    """So a caller need not decode twice."""
    frames = [
        FRAMES.content("late", "alice", history=["missing"]),
        FRAMES.sync("alice", history=["missing"]),
        FRAMES.content("missing", "alice"),
    ]
    bytewise, framewise = participant("bob"), participant("bob")
    for frame in frames:
        value = value_of(frame)
        expected = bytewise.receive(value, START_MS, retrieval_hint=b"hint")
        step = framewise.receive_frame(
            decode(value), value, START_MS, retrieval_hint=b"hint"
        )
        assert typed(step.events) == typed(expected.events)
    assert framewise.snapshot() == bytewise.snapshot()


@pytest.mark.parametrize("is_decoded", [False, True], ids=["bytes", "decoded"])
def test_frame_or_hint_that_is_too_long_enters_no_state(*, is_decoded: bool) -> None:
    """Otherwise the participant could not be restored from its own snapshot."""
    bob = participant("bob")
    text = bytes(SPEC.max_frame_bytes)
    reasons = []
    for frame in (
        FRAMES.content("short", "alice"),
        FRAMES.content("long", "alice", text=text),
        FRAMES.content("late", "alice", text=text, history=["missing"]),
    ):
        value, hint = value_of(frame), bytes(SPEC.hint_limit + 1)
        if is_decoded:
            step = bob.receive_frame(frame, value, START_MS, retrieval_hint=hint)
        else:
            step = bob.receive(value, START_MS, retrieval_hint=hint)
        reasons += [one.reason for one in of_type(step.events, Ignored)]
    assert reasons == [IgnoredReason.TOO_LARGE] * 2
    assert bob.log == ("short",)
    again = MessageChannel.restore(bob.snapshot(), random=Random(1), profile=SPEC)
    assert again.snapshot() == bob.snapshot()


@pytest.mark.parametrize(
    ("frame", "event"),
    [
        (FRAMES.content("one", ""), Received("one", "")),
        (FRAMES.sync("", message_id="one"), SyncReceived("one", "")),
        (
            FRAMES.ephemeral("", message_id="one"),
            EphemeralReceived("one", "", b"text"),
        ),
    ],
    ids=["content", "sync", "ephemeral"],
)
def test_frame_without_a_sender_counts(frame: Frame, event: Event) -> None:
    """nim-sds sends such frames if no participant id is set."""
    (first, *_) = receive(participant(), frame)
    assert typed([first]) == typed([event])


def test_events_of_different_kinds_are_unequal() -> None:
    """Equality needs the same kind and values."""
    assert Received("one", "bob") == Received("one", "bob")
    assert Received("one", "bob") != SyncReceived("one", "bob")


def test_receiving_broadcasts_nothing() -> None:
    """Answers and retries come from `advance`."""
    alice = participant()
    assert alice.receive(value_of(FRAMES.content("one", "bob")), START_MS) == Step(
        (),
        [
            Received("one", "bob"),
            Delivered("one", "bob", 1_000, b"text"),
        ],
    )


def test_missing_dependency_keeps_a_hint_that_is_not_too_long() -> None:
    """A longer hint is dropped, but not the dependency."""
    alice = participant()
    for message_id, hint in (("a", b"1234"), ("b", b"12345")):
        alice.send(b"hi", START_MS, message_id=message_id)
        alice.note_retrieval_hint(message_id, hint)
    bob = participant("bob", replace(SPEC, hint_limit=4))
    events = hand_over(alice.send(b"hi", START_MS, message_id="c"), bob)
    assert typed(events[1:]) == typed(
        [Missing("a", b"1234", "alice", "c"), Missing("b", b"", "alice", "c")]
    )
