"""Buffers that are limited in bytes, since strangers choose the length of frames."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Buffer,
    Delivered,
    Evicted,
    IrretrievablyLost,
    MessageChannel,
    SnapshotError,
)
from sds_core.message_channel.retained import RetainedMessages
from sds_core.message_channel.sized_dict import SizedDict
from sds_core.message_channel.snapshot import SEAL
from tests.support.frames import START_MS, FrameFactory, value_of
from tests.support.message_channel.repair_steps import state
from tests.support.message_channel.strangers import SMALL, assert_usable
from tests.support.participants import CHANNEL, SPEC, of_type, participant, receive

FRAMES = FrameFactory(CHANNEL)
LEAST = SPEC.max_frame_bytes
"""The smallest limit in bytes: one frame must have room."""

HALF = b"x" * (LEAST // 2 - 200)
"""Two messages of this length fit into the least limit without their filters."""


def test_flood_of_the_longest_frames_takes_bounded_memory() -> None:
    """Ten times what the limits allow, each waiting for something unknown."""
    limit = 4 * LEAST
    profile = replace(
        SMALL, incoming_bytes_limit=limit, repair_retained_bytes_limit=limit
    )
    alice = participant(profile=profile)
    tracemalloc.start()
    try:
        for number in range(40):
            text = bytes([number]) * (LEAST - 1_000)
            history = [(f"x{number}", "bob")]
            frame = FRAMES.content(f"{number:02}", "eve", text=text, history=history)
            receive(alice, frame)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A waiting message is there as bytes and as a frame, a stored one as bytes.
    assert used < 1.5 * (2 * limit + limit)
    assert_usable(alice)


class TestOutgoing:
    def test_oldest_messages_are_evicted_beyond_the_bytes(self) -> None:
        """As beyond the number: the application learns it."""
        alice = participant(profile=replace(SMALL, outgoing_bytes_limit=LEAST))
        events = []
        for number in range(4):
            events += alice.send(HALF, START_MS, message_id=f"m{number}").events
        assert of_type(events, Evicted) == [
            Evicted(Buffer.OUTGOING, "m0"),
            Evicted(Buffer.OUTGOING, "m1"),
        ]
        assert alice.unacknowledged == ("m2", "m3")

    def test_one_long_message_evicts_several_short_ones(self) -> None:
        """As many as it takes."""
        alice = participant(profile=replace(SMALL, outgoing_bytes_limit=LEAST))
        for number in range(4):
            alice.send(HALF[: len(HALF) // 3], START_MS, message_id=f"m{number}")
        step = alice.send(HALF + HALF[:-500], START_MS, message_id="long")
        assert [one.message_id for one in of_type(step.events, Evicted)] == [
            "m0", "m1", "m2", "m3",
        ]  # fmt: skip

    def test_acknowledged_message_makes_room(self) -> None:
        """Its bytes no longer count."""
        alice = participant(profile=replace(SMALL, outgoing_bytes_limit=LEAST))
        for number in range(6):
            step = alice.send(HALF, START_MS, message_id=f"m{number}")
            assert of_type(step.events, Evicted) == []
            receive(alice, FRAMES.sync("bob", history=[f"m{number}"]))
        assert alice.unacknowledged == ()


class TestIncoming:
    def test_oldest_message_is_delivered_beyond_the_bytes(self) -> None:
        """What it lacks stays missing, as beyond the number."""
        alice = participant(profile=replace(SMALL, incoming_bytes_limit=LEAST))
        events = []
        for number in range(3):
            frame = FRAMES.content(
                f"m{number}", "bob", text=HALF, history=[f"x{number}"]
            )
            events += receive(alice, frame)
        assert of_type(events, Evicted) == [Evicted(Buffer.INCOMING, "m0")]
        assert of_type(events, IrretrievablyLost) == []
        assert [one.message_id for one in alice.missing] == ["x0", "x1", "x2"]
        assert [one.message_id for one in of_type(events, Delivered)] == ["m0"]
        assert alice.waiting == ("m1", "m2")

    def test_delivered_message_makes_room(self) -> None:
        """Its bytes no longer count."""
        alice = participant(profile=replace(SMALL, incoming_bytes_limit=LEAST))
        for number in range(6):
            frame = FRAMES.content(
                f"m{number}", "bob", text=HALF, history=[f"x{number}"]
            )
            events = receive(alice, frame, FRAMES.content(f"x{number}", "bob"))
            assert of_type(events, Evicted) == []
        assert alice.waiting == ()


class TestRetained:
    def test_oldest_messages_are_dropped_beyond_the_bytes(self) -> None:
        """The number alone would allow 262 MB."""
        kept = RetainedMessages(replace(SPEC, repair_retained_bytes_limit=LEAST))
        for number in range(4):
            kept.add(f"m{number}", HALF, "alice", START_MS)
        assert list(kept.state()) == ["m2", "m3"]

    def test_bytes_still_count_after_a_restart(self) -> None:
        """The sum is that of what was restored."""
        profile = replace(SMALL, repair_retained_bytes_limit=LEAST)
        alice = participant(profile=profile)
        receive(alice, *(FRAMES.content(f"m{n}", "bob", text=HALF) for n in range(2)))
        alice = MessageChannel.restore(
            alice.snapshot(), random=Random(1), profile=profile
        )
        receive(alice, FRAMES.content("m2", "bob", text=HALF))
        assert list(state(alice).retained) == ["m1", "m2"]


@pytest.mark.parametrize("after", ["restart", "none"])
def test_every_message_of_the_longest_frame_has_room(after: str) -> None:
    """The least limits hold one."""
    profile = replace(
        SMALL,
        outgoing_bytes_limit=LEAST,
        incoming_bytes_limit=LEAST,
        repair_retained_bytes_limit=LEAST,
    )
    alice = participant(profile=profile)
    frame = FRAMES.content("m", "bob", history=["x"])
    text = b"x" * (LEAST - len(value_of(frame)))
    frame = FRAMES.content("m", "bob", text=text[:-8], history=["x"])
    events = receive(alice, frame)
    if after == "restart":
        alice = MessageChannel.restore(
            alice.snapshot(), random=Random(1), profile=profile
        )
    assert of_type(events, Evicted) == []
    assert alice.waiting == ("m",)


@pytest.mark.parametrize(
    "option",
    ["outgoing_bytes_limit", "incoming_bytes_limit", "repair_retained_bytes_limit"],
)
def test_snapshot_with_more_bytes_than_allowed_is_refused(option: str) -> None:
    """The error has the required limit, which is then enough."""
    alice = participant(profile=SMALL)
    for number in range(3):
        alice.send(HALF, START_MS, message_id=f"own{number}")
        frame = FRAMES.content(f"m{number}", "bob", text=HALF, history=[f"x{number}"])
        receive(alice, frame)
    held = {
        "outgoing_bytes_limit": state(alice).outgoing,
        "incoming_bytes_limit": state(alice).waiting,
        "repair_retained_bytes_limit": list(state(alice).retained.values()),
    }[option]
    needed = sum(len(one.value) for one in held)
    assert needed > LEAST

    def restored(limit: int) -> bytes:
        profile = replace(SMALL, **{option: limit})
        again = MessageChannel.restore(
            alice.snapshot(), random=Random(1), profile=profile
        )
        return again.snapshot()

    detail = (
        f"the snapshot needs {option} >= {needed}, but the profile has {needed - 1}"
    )
    with pytest.raises(SnapshotError, match=detail):
        restored(needed - 1)
    expected = state(alice)
    expected.profile = replace(SMALL, **{option: needed})
    assert restored(needed) == SEAL.pack(expected)


@pytest.mark.parametrize("buffer", ["outgoing", "waiting", "retained"])
def test_snapshot_with_longer_frames_than_allowed_is_refused(buffer: str) -> None:
    """They would be broadcast again, and nobody would read them."""
    profile = replace(SMALL, repair=buffer == "retained")
    alice = participant(profile=profile)
    if buffer == "outgoing":
        alice.send(HALF, START_MS)
    else:
        history = ["x"] if buffer == "waiting" else []
        receive(alice, FRAMES.content("m", "bob", text=HALF, history=history))
    held = {
        "outgoing": state(alice).outgoing,
        "waiting": state(alice).waiting,
        "retained": list(state(alice).retained.values()),
    }[buffer]
    (least,) = (len(one.value) for one in held)
    with pytest.raises(
        SnapshotError, match=f"the snapshot needs max_frame_bytes >= {least}"
    ):
        MessageChannel.restore(
            alice.snapshot(),
            random=Random(1),
            profile=replace(profile, max_frame_bytes=least - 1),
        )


def test_sizes_add_up_over_all_changes() -> None:
    """Additions, replacements and removals by any method of a dict."""
    sized: SizedDict[bytes] = SizedDict(len)
    sized["a"] = b"12"
    sized["b"] = b"345"
    assert (sized.size_bytes, len(sized), sized.oldest()) == (5, 2, "a")
    sized["a"] = b"1"
    assert (sized.size_bytes, sized.oldest()) == (4, "a")
    assert sized.pop("a") == b"1"
    assert sized.pop("a", None) is None
    assert (sized.size_bytes, list(sized), "a" in sized) == (3, ["b"], False)
    sized.update({"c": b"6789"})
    assert list(sized.items()) == [("b", b"345"), ("c", b"6789")]
    assert list(sized.values()) == [b"345", b"6789"]
    assert not sized.is_over(2, 7)
    assert sized.is_over(1, 7)
    assert sized.is_over(2, 6)
    del sized["c"]
    assert sized.size_bytes == 3
