"""Content of our messages, and what is stored of them (SDS, "Send Message")."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Broadcast,
    Cause,
    Delivered,
    EmptyContent,
    FrameTooLarge,
    MessageChannel,
    MessageIdTaken,
    ParticipantError,
    Sent,
    Step,
)
from sds_core.wire import BloomFilter, Dialect, FrameKind, HistoryEntry
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
from tests.support.wire.raw import entry, field

FRAMES = FrameFactory(CHANNEL)


def held(step: Step, *message_ids: str) -> list[bool]:
    """Whether the filter of what is broadcast holds each id."""
    filter_ = BloomFilter.from_wire(Dialect.SPEC, frame_of(step).bloom_filter)
    return [filter_.contains(message_id) for message_id in message_ids]


@pytest.mark.rule("sds-message-1", "sds-message-6")
def test_message_has_the_fields_of_the_schema() -> None:
    """Compared with protobuf written by hand."""
    alice = participant()
    alice.send(b"first", START_MS, message_id="one")
    filter_ = BloomFilter(Dialect.SPEC)
    filter_.add("one")
    (broadcast,) = alice.send(b"second", START_MS, message_id="two").broadcasts
    assert broadcast.value == (
        field(1, "alice")
        + field(2, "two")
        + field(3, CHANNEL)
        + field(10, START_MS + 2)
        + field(11, entry("one", sender_id="alice"))
        + field(12, bytes(filter_.bits))
        + field(20, b"second")
    )


@pytest.mark.rule("sds-message-2", "sds-message-4", "sds-message-9")
def test_message_has_sender_channel_and_content() -> None:
    """As the application gave them."""
    frame = frame_of(participant("bob", channel_id="room").send(b"hi", START_MS))
    assert (frame.sender_id, frame.channel_id, frame.content) == ("bob", "room", b"hi")
    assert frame.kind is FrameKind.CONTENT
    assert frame.repair_request == []


@pytest.mark.rule("sds-message-5")
def test_channel_of_a_group_without_channels_is_called_0() -> None:
    """The name has no special meaning here."""
    alice = participant(channel_id="0")
    bob = participant("bob", channel_id="0")
    (broadcast,) = alice.send(b"hi", START_MS).broadcasts
    bob.receive(broadcast.value, START_MS)
    assert bob.log == alice.log


@pytest.mark.rule("sds-event-2a", "sds-schedule-1", "sds-sdk-task-4")
def test_sending_is_done_when_the_call_returns() -> None:
    """It returns frame and event, and queues nothing."""
    step = participant().send(b"hi", START_MS, message_id="one")
    (broadcast,) = step.broadcasts
    assert broadcast == Broadcast(Cause.CONTENT, "one", broadcast.value)
    assert typed(step.events) == typed([Sent("one", START_MS + 1)])


@pytest.mark.rule("sds-assumption-3", "sds-message-3")
def test_ids_of_identical_messages_differ() -> None:
    """They hash sender and channel too, with unambiguous boundaries."""
    alice = participant("alice")
    steps = [
        alice.send(b"same", START_MS),
        alice.send(b"same", START_MS),
        participant("bob").send(b"same", START_MS),
        participant("alice", channel_id="room").send(b"same", START_MS),
        participant("alice").send(b"other", START_MS),
        participant("ab", channel_id="c").send(b"same", START_MS),
        participant("b", channel_id="ca").send(b"same", START_MS),
    ]
    ids = [frame_of(step).message_id for step in steps]
    assert len(set(ids)) == len(ids)
    assert {len(message_id) for message_id in ids} == {64}


@pytest.mark.rule("sds-assumption-3", "sds-message-3")
@pytest.mark.parametrize("repeats_numbers", [False, True])
def test_id_is_not_used_again_after_an_older_snapshot(repeats_numbers: bool) -> None:
    """A constant heartbeat is delivered, although its timestamp was used before.

    Time or random numbers differ, here only one of them.
    """
    random = Random(1)
    alice = MessageChannel(
        CHANNEL, "alice", now_ms=START_MS, random=random, profile=SPEC
    )
    bob = participant("bob")
    older, numbers = alice.snapshot(), random.getstate()
    first = alice.send(b"beat", START_MS)
    hand_over(first, bob)
    if repeats_numbers:
        random.setstate(numbers)
    again = MessageChannel.restore(older, random=random, profile=SPEC)
    second = again.send(b"beat", START_MS + 1 if repeats_numbers else START_MS)
    assert frame_of(second).lamport == frame_of(first).lamport
    (delivered,) = of_type(hand_over(second, bob), Delivered)
    assert delivered.message_id == frame_of(second).message_id
    assert len(bob.log) == 2


def test_random_numbers_decide_an_id_of_the_same_time() -> None:
    """With the same numbers, the same calls give the same frames."""
    first, second = (participant().send(b"same", START_MS) for _ in range(2))
    assert frame_of(first).message_id == frame_of(second).message_id


def test_application_may_choose_the_message_id() -> None:
    """Up to the limit, in characters."""
    alice = participant()
    for message_id in ("one", "é" * SPEC.id_limit):
        step = alice.send(b"hi", START_MS, message_id=message_id)
        assert frame_of(step).message_id == message_id
    assert alice.log == ("one", "é" * SPEC.id_limit)


@pytest.mark.parametrize(
    ("message_id", "message"),
    [
        ("", "message_id has 0 characters, but 1 to 256 are allowed"),
        ("x" * 257, "message_id has 257 characters, but 1 to 256 are allowed"),
        ("\ud800", "message_id '.*' is not valid Unicode text: surrogates"),
    ],
)
def test_invalid_id_is_refused(message_id: str, message: str) -> None:
    """Before any change of state."""
    alice = participant()
    before = alice.snapshot()
    with pytest.raises(ValueError, match=message):
        alice.send(b"hi", START_MS, message_id=message_id)
    assert alice.snapshot() == before


@pytest.mark.parametrize("bad", ["", "x" * 257, "\ud800"])
def test_names_of_channel_and_participant_are_checked(bad: str) -> None:
    """When the participant is created, not when it first sends."""
    with pytest.raises(ValueError, match="channel_id"):
        MessageChannel(bad, "alice", now_ms=START_MS, random=Random(1))
    with pytest.raises(ValueError, match="participant_id"):
        MessageChannel(CHANNEL, bad, now_ms=START_MS, random=Random(1))


@pytest.mark.rule("sds-message-3")
def test_id_of_another_message_is_refused() -> None:
    """Of one in the log, or of one that waits."""
    alice = participant()
    alice.send(b"hi", START_MS, message_id="sent")
    receive(alice, FRAMES.content("waiting", "bob", history=["missing"]))
    before = alice.snapshot()
    for taken in ("sent", "waiting"):
        with pytest.raises(MessageIdTaken, match=f"'{taken}' is taken") as caught:
            alice.send(b"hi", START_MS, message_id=taken)
        assert caught.value.message_id == taken
    assert alice.snapshot() == before


def test_id_of_a_missing_message_is_refused() -> None:
    """Otherwise the missing one would count as a duplicate later."""
    alice = participant()
    receive(alice, FRAMES.content("waiting", "bob", history=["missing"]))
    lost_ms = START_MS + 600_000
    for now_ms in (START_MS, lost_ms):
        alice.sweep_incoming(now_ms)
        with pytest.raises(MessageIdTaken, match="'missing' is taken"):
            alice.send(b"hi", now_ms, message_id="missing")
    assert alice.missing == ()
    receive(alice, FRAMES.content("missing", "bob"), now_ms=lost_ms)
    assert alice.log == ("missing", "waiting")


def test_id_of_a_message_dropped_by_the_log_is_refused() -> None:
    """Other participants may still have it."""
    alice = participant(profile=replace(SPEC, log_limit=1))
    for message_id in ("first", "second"):
        alice.send(b"hi", START_MS, message_id=message_id)
    assert alice.log == ("second",)
    with pytest.raises(MessageIdTaken, match="'first' is taken"):
        alice.send(b"hi", START_MS, message_id="first")


@pytest.mark.rule("sds-message-9", "sds-event-4")
def test_message_without_content_is_refused() -> None:
    """It would be a sync message."""
    alice = participant()
    before = alice.snapshot()
    with pytest.raises(EmptyContent, match=r"use sync\(\)"):
        alice.send(b"", START_MS)
    with pytest.raises(ParticipantError):
        alice.send_ephemeral(b"", START_MS)
    assert alice.snapshot() == before


def test_frame_longer_than_allowed_is_refused_and_changes_nothing() -> None:
    """With one byte less it is sent."""
    content = bytes(100_000)
    frame = participant().send(content, START_MS, message_id="one").broadcasts[0]
    size = len(frame.value)
    fits = participant(profile=replace(SPEC, max_frame_bytes=size))
    assert fits.send(content, START_MS, message_id="one").broadcasts == [frame]
    alice = participant(profile=replace(SPEC, max_frame_bytes=size - 1))
    before = alice.snapshot()
    with pytest.raises(
        FrameTooLarge, match=f"{size} bytes, but at most {size - 1}"
    ) as e:
        alice.send(content, START_MS, message_id="one")
    assert (e.value.actual_bytes, e.value.limit_bytes) == (size, size - 1)
    assert alice.snapshot() == before


@pytest.mark.rule("sds-send-1")
def test_lamport_timestamp_goes_up_by_one() -> None:
    """From the time of the start, however much time has passed."""
    alice = participant()
    frames = [frame_of(alice.send(b"hi", START_MS + 5_000)) for _ in range(3)]
    assert [frame.lamport for frame in frames] == [
        START_MS + 1,
        START_MS + 2,
        START_MS + 3,
    ]
    assert alice.lamport == START_MS + 3


@pytest.mark.rule("sds-send-1", "sds-r-unchanged-1")
@pytest.mark.parametrize("content", [b"hi", b""], ids=["content", "sync"])
def test_repair_requests_leave_the_lamport_timestamp_as_it_is(content: bytes) -> None:
    """It goes up by one, in frame and state, with and without a request."""
    alice = participant()
    receive(alice, FRAMES.content("m", "bob", START_MS + 5, history=[("x", "bob")]))
    lamports = []
    for _ in range(2):
        now_ms = START_MS + SPEC.t_max_ms
        step = alice.send(content, now_ms) if content else alice.sync(now_ms)
        frame = frame_of(step)
        lamports.append((len(frame.repair_request), frame.lamport, alice.lamport))
    assert lamports == [
        (1, START_MS + 1, START_MS + 1),
        (0, START_MS + 2, START_MS + 2),
    ]


@pytest.mark.rule("sds-send-2", "sds-send-6")
def test_causal_history_names_the_last_two_of_the_log_in_order() -> None:
    """In log order, not in order of arrival, with their senders."""
    alice = participant()
    alice.send(b"hi", START_MS, message_id="ours")
    receive(
        alice,
        FRAMES.content("newest", "bob", START_MS + 9),
        FRAMES.content("oldest", "carol", START_MS - 9),
    )
    frame = frame_of(alice.send(b"hi", START_MS))
    assert [HistoryEntry(*one) for one in frame.detached().causal_history] == [
        HistoryEntry("ours", b"", "alice"),
        HistoryEntry("newest", b"", "bob"),
    ]


@pytest.mark.parametrize(
    ("size", "named"), [(0, []), (1, ["c"]), (3, ["a", "b", "c"]), (4, ["a", "b", "c"])]
)
def test_size_of_the_causal_history_is_an_option(size: int, named: list[str]) -> None:
    """It may be 0."""
    alice = participant(profile=replace(SPEC, causal_history_size=size))
    for message_id in "abc":
        alice.send(b"hi", START_MS, message_id=message_id)
    frame = frame_of(alice.send(b"hi", START_MS))
    assert [one.message_id for one in frame.causal_history] == named


@pytest.mark.rule("sds-send-3", "sds-sdk-waku-1b")
def test_causal_history_carries_retrieval_hints() -> None:
    """Those of own messages come from the transport, others as received."""
    alice = participant()
    alice.send(b"hi", START_MS, message_id="ours")
    alice.note_retrieval_hint("ours", b"\x01" * 32)
    (theirs,) = participant("bob").send(b"hi", START_MS + 9).broadcasts
    alice.receive(theirs.value, START_MS, retrieval_hint=b"\x02" * 32)
    frame = frame_of(alice.send(b"hi", START_MS))
    hints = {one.message_id: one.retrieval_hint for one in frame.causal_history}
    assert hints == {"ours": b"\x01" * 32, theirs.message_id: b"\x02" * 32}


def test_invalid_hint_for_an_own_message_is_ignored() -> None:
    """If it is too long or for an unknown message."""
    alice = participant(profile=replace(SPEC, hint_limit=4))
    alice.send(b"hi", START_MS, message_id="one")
    alice.send(b"hi", START_MS, message_id="two")
    alice.note_retrieval_hint("one", b"12345")
    alice.note_retrieval_hint("two", b"1234")
    alice.note_retrieval_hint("unknown", b"1234")
    frame = frame_of(alice.send(b"hi", START_MS))
    assert [one.retrieval_hint for one in frame.causal_history] == [b"", b"1234"]
    assert alice.log[:2] == ("one", "two")


@pytest.mark.parametrize(("hint", "kept"), [(b"1234", b"1234"), (b"12345", b"")])
def test_too_long_received_hint_is_dropped(hint: bytes, kept: bytes) -> None:
    """The message itself counts."""
    alice = participant(profile=replace(SPEC, hint_limit=4))
    value = value_of(FRAMES.content("theirs", "bob"))
    alice.receive(value, START_MS, retrieval_hint=hint)
    (named,) = frame_of(alice.send(b"hi", START_MS)).causal_history
    assert (named.message_id, named.retrieval_hint) == ("theirs", kept)


@pytest.mark.parametrize(
    ("hint_bytes", "named"), [(12_478, ["b", "c"]), (12_479, ["c"])]
)
def test_causal_history_leaves_room_in_the_frame(
    hint_bytes: int, named: list[str]
) -> None:
    """At most a quarter, with 16 bytes per entry for tags; newest entries stay."""
    profile = replace(
        SPEC, causal_history_size=3, max_frame_bytes=100_000, hint_limit=13_000
    )
    alice = participant(profile=profile)
    for message_id in "abc":
        alice.send(b"hi", START_MS, message_id=message_id)
        alice.note_retrieval_hint(message_id, bytes(hint_bytes))
    frame = frame_of(alice.send(b"hi", START_MS))
    assert [one.message_id for one in frame.causal_history] == named


@pytest.mark.rule("sds-state-1b", "sds-send-4")
def test_message_has_the_filter_from_before_it() -> None:
    """With all ids sent and received so far, but not its own."""
    alice = participant()
    assert held(alice.send(b"hi", START_MS, message_id="one"), "one") == [False]
    receive(alice, FRAMES.content("theirs", "bob"))
    step = alice.send(b"hi", START_MS, message_id="two")
    assert held(step, "one", "theirs", "two") == [True, True, False]


@pytest.mark.rule("sds-state-1c", "sds-state-4", "sds-send-5")
def test_message_awaits_acknowledgement() -> None:
    """It is in the outgoing buffer, oldest first, and in the log."""
    alice = participant()
    alice.send(b"hi", START_MS, message_id="b")
    alice.send(b"hi", START_MS, message_id="a")
    assert alice.unacknowledged == ("b", "a")
    assert alice.possibly_acknowledged == ()
    assert alice.log == ("b", "a")


@pytest.mark.rule("sds-steps-1")
def test_channels_of_one_participant_are_independent() -> None:
    """Each has its own timestamp, log, filter and buffers."""
    here = participant(channel_id="here")
    there = participant(channel_id="there")
    before = there.snapshot()
    here.send(b"hi", START_MS, message_id="one")
    receive(here, FrameFactory("here").content("two", "bob", START_MS + 9))
    assert there.snapshot() == before
    frame = frame_of(there.send(b"hi", START_MS))
    assert frame.lamport == START_MS + 1
    assert frame.causal_history == []
    assert frame.bloom_filter == BloomFilter(Dialect.SPEC).to_wire()
