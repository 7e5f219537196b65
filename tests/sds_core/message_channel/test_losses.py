"""How long a missing message is waited for, and what follows from its loss.

SDS, "Periodic Incoming Buffer Sweep" and "Timeout for Lost Messages".
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Delivered,
    IrretrievablyLost,
    Missing,
    Received,
    Step,
)
from sds_core.wire import HistoryEntry
from tests.support.frames import START_MS, FrameFactory
from tests.support.message_channel.waits import LOST_AFTER_MS, QUIET, delivered, waiting
from tests.support.participants import CHANNEL, of_type, participant, receive, typed

FRAMES = FrameFactory(CHANNEL)


def calls_to_break_circle(size: int) -> int:
    """How many calls a sweep makes that delivers a circle of messages."""
    bob = participant("bob", replace(QUIET, incoming_limit=size))
    for number in range(size):
        neighbours = (number + step for step in (-2, -1, 1, 2))
        history = [f"m{one % size:04}" for one in neighbours]
        receive(bob, FRAMES.content(f"m{number:04}", "eve", number, history=history))
    assert len(bob.waiting) == size
    calls = Counter[str]()
    before = sys.getprofile()
    sys.setprofile(lambda _, event, __: calls.update([event]))
    try:
        step = bob.sweep_incoming(START_MS + LOST_AFTER_MS)
    finally:
        sys.setprofile(before)
    assert delivered(step) == [f"m{number:04}" for number in range(size)]
    return calls["call"] + calls["c_call"]


class TestLost:
    @pytest.mark.rule(
        "sds-incoming-1",
        "sds-incoming-5",
        "sds-lost-1",
        "sds-lost-2",
        "sds-event-1d",
    )
    def test_missing_message_is_lost_after_its_time(self) -> None:
        """It is reported once, and messages that wait for it are delivered."""
        bob = waiting()
        assert bob.next_deadline_ms == START_MS + LOST_AFTER_MS
        assert bob.advance(START_MS + LOST_AFTER_MS - 1).events == []
        step = bob.advance(START_MS + LOST_AFTER_MS)
        assert typed(step.events) == typed(
            [
                IrretrievablyLost("x", b"", "carol"),
                Delivered("m", "alice", 9, b"text"),
            ]
        )
        assert bob.missing == bob.waiting == ()
        assert bob.log == ("m",)
        assert bob.advance(START_MS + 2 * LOST_AFTER_MS).events == []

    def test_time_counts_from_when_the_message_was_first_named(self) -> None:
        """A later message that names it does not restart the time."""
        bob = waiting()
        late = FRAMES.content("n", "alice", 10, history=["x"])
        receive(bob, late, now_ms=START_MS + 1_000)
        step = bob.advance(START_MS + LOST_AFTER_MS)
        assert delivered(step) == ["m", "n"]

    def test_messages_freed_by_a_loss_are_delivered_in_the_order_of_the_log(
        self,
    ) -> None:
        """By timestamp, not by id or arrival."""
        bob = participant("bob", QUIET)
        receive(
            bob,
            FRAMES.content("a", "alice", 9, history=["x"]),
            FRAMES.content("z", "alice", 0, history=["x"]),
            FRAMES.content("b", "alice", 5, history=["x"]),
        )
        assert delivered(bob.advance(START_MS + LOST_AFTER_MS)) == ["z", "b", "a"]

    def test_each_missing_message_has_its_own_time(self) -> None:
        """A message that lacks a later one too continues to wait."""
        bob = participant("bob", QUIET)
        receive(bob, FRAMES.sync("alice", history=["x"]))
        late = FRAMES.content("m", "alice", 9, history=["x", "y"])
        receive(bob, late, now_ms=START_MS + 1_000)
        events = bob.advance(START_MS + LOST_AFTER_MS).events
        assert events == [IrretrievablyLost("x", b"", "")]
        assert bob.next_deadline_ms == START_MS + LOST_AFTER_MS + 1_000
        assert delivered(bob.advance(bob.next_deadline_ms)) == ["m"]

    def test_lost_message_that_arrives_later_is_delivered(self) -> None:
        """At its place in the log."""
        bob = waiting()
        bob.advance(START_MS + LOST_AFTER_MS)
        late = FRAMES.content("x", "carol", 5)
        events = receive(bob, late, now_ms=START_MS + LOST_AFTER_MS + 1)
        assert typed(events) == typed(
            [Received("x", "carol"), Delivered("x", "carol", 5, b"text")]
        )
        assert bob.log == ("x", "m")

    def test_lost_message_is_not_awaited_again(self) -> None:
        """Later messages that name it are delivered without a new report."""
        bob = waiting()
        bob.advance(START_MS + LOST_AFTER_MS)
        events = receive(bob, FRAMES.content("n", "alice", 10, history=["x", "m"]))
        assert typed(events) == typed(
            [Received("n", "alice"), Delivered("n", "alice", 10, b"text")]
        )

    def test_lost_messages_are_remembered_up_to_a_limit(self) -> None:
        """The first lost one is forgotten, and missing when named again."""
        bob = participant("bob", replace(QUIET, missing_limit=3))
        receive(bob, FRAMES.sync("alice", history=["a", "b"]))
        bob.advance(START_MS + LOST_AFTER_MS)
        later_ms = START_MS + LOST_AFTER_MS
        receive(bob, FRAMES.sync("alice", history=["c", "d"]), now_ms=later_ms)
        bob.advance(later_ms + LOST_AFTER_MS)
        events = receive(bob, FRAMES.sync("alice", history=["d", "c", "b", "a"]))
        assert [event.message_id for event in of_type(events, Missing)] == ["a"]

    def test_lost_messages_are_remembered_however_small_the_log_is(self) -> None:
        """Messages that pass through the log displace none of them."""
        bob = waiting(replace(QUIET, log_limit=1, missing_limit=1))
        bob.advance(START_MS + LOST_AFTER_MS)
        receive(bob, *(FRAMES.content(f"n{at}", "alice", 10 + at) for at in range(9)))
        assert receive(bob, FRAMES.content("z", "alice", 99, history=["x"])) == [
            Received("z", "alice"),
            Delivered("z", "alice", 99, b"text"),
        ]

    @pytest.mark.rule("sds-lost-1")
    def test_without_a_timeout_nothing_is_lost(self) -> None:
        """A message waits without limit."""
        bob = waiting(replace(QUIET, lost_after_ms=None))
        assert bob.advance(START_MS + 10**8).events == []
        assert bob.waiting == ("m",)
        assert delivered(receive(bob, FRAMES.content("x", "carol"))) == ["x", "m"]

    def test_message_dropped_by_the_log_is_not_missing(self) -> None:
        """It was delivered, so messages that name it need not wait."""
        bob = participant("bob", replace(QUIET, log_limit=1))
        receive(bob, FRAMES.content("a", "alice", 1), FRAMES.content("b", "alice", 2))
        assert bob.log == ("b",)
        events = receive(bob, FRAMES.content("c", "alice", 3, history=["a", "b"]))
        assert typed(events) == typed(
            [Received("c", "alice"), Delivered("c", "alice", 3, b"text")]
        )

    def test_messages_that_name_each_other_do_not_wait_for_ever(self) -> None:
        """They are delivered when their time is over, and neither is lost."""
        bob = participant("bob", QUIET)
        receive(bob, FRAMES.content("a", "eve", 1, history=["b"]))
        late = FRAMES.content("b", "eve", 2, history=["a"])
        assert delivered(receive(bob, late, now_ms=START_MS + 1_000)) == []
        step = bob.advance(START_MS + LOST_AFTER_MS)
        assert delivered(step) == ["a", "b"]
        assert of_type(step.events, IrretrievablyLost) == []
        assert bob.waiting == ()

    @pytest.mark.rule("sds-r-edge-5")
    def test_circle_is_broken_at_its_first_message_in_the_order_of_the_log(
        self,
    ) -> None:
        """By timestamp, then id; the others follow as they become free."""
        messages = [
            FRAMES.content("a", "eve", 7, history=["b"]),
            FRAMES.content("b", "eve", 5, history=["c"]),
            FRAMES.content("c", "eve", 5, history=["a"]),
            FRAMES.content("d", "alice", 9, history=["b"]),
        ]
        for order in itertools.permutations(messages):
            bob = participant("bob", QUIET)
            assert delivered(receive(bob, *order)) == []
            assert bob.next_deadline_ms == START_MS + LOST_AFTER_MS
            assert delivered(bob.advance(START_MS + LOST_AFTER_MS - 1)) == []
            step = bob.advance(START_MS + LOST_AFTER_MS)
            assert delivered(step) == ["b", "a", "c", "d"]
            assert of_type(step.events, IrretrievablyLost) == []
            assert bob.waiting == ()

    def test_each_of_two_circles_has_its_own_time(self) -> None:
        """It counts from the circle's oldest message."""
        bob = participant("bob", QUIET)
        for at, (one, other) in ((0, "ab"), (1_000, "xy")):
            for message_id, history in ((one, [other]), (other, [one])):
                frame = FRAMES.content(message_id, "eve", history=history)
                receive(bob, frame, now_ms=START_MS + at)
        assert delivered(bob.advance(START_MS + LOST_AFTER_MS)) == ["a", "b"]
        assert bob.next_deadline_ms == START_MS + LOST_AFTER_MS + 1_000
        assert delivered(bob.advance(bob.next_deadline_ms)) == ["x", "y"]

    def test_circle_that_lacks_a_message_waits_until_that_is_lost(self) -> None:
        """The missing message's time may end after the circle's."""
        bob = participant("bob", QUIET)
        receive(bob, FRAMES.content("b", "eve", 2, history=["a"]))
        late = FRAMES.content("a", "eve", 1, history=["b", "x"])
        receive(bob, late, now_ms=START_MS + 300_000)
        over_ms = START_MS + 300_000 + LOST_AFTER_MS
        assert bob.advance(START_MS + LOST_AFTER_MS).events == []
        assert bob.next_deadline_ms == over_ms
        assert bob.sweep_incoming(over_ms - 1).events == []
        assert typed(bob.advance(over_ms).events) == typed(
            [
                IrretrievablyLost("x", b"", ""),
                Delivered("a", "eve", 1, b"text"),
                Delivered("b", "eve", 2, b"text"),
            ]
        )

    def test_arrival_of_a_missing_message_does_not_break_the_circle(
        self,
    ) -> None:
        """The circle is delivered when its own time is over."""
        bob = participant("bob", QUIET)
        receive(
            bob,
            FRAMES.content("b", "eve", 3, history=["a"]),
            FRAMES.content("a", "eve", 2, history=["b", "x"]),
        )
        assert delivered(receive(bob, FRAMES.content("x", "alice", 1))) == ["x"]
        assert delivered(bob.advance(START_MS + LOST_AFTER_MS)) == ["a", "b"]

    def test_circle_has_its_time_whatever_else_is_missing(self) -> None:
        """In a busy channel some message is always missing."""
        bob = participant("bob", QUIET)
        receive(
            bob,
            FRAMES.content("a", "eve", 1, history=["b"]),
            FRAMES.content("b", "eve", 2, history=["a"]),
        )
        later = FRAMES.content("m", "alice", 9, history=["x"])
        receive(bob, later, now_ms=START_MS + 1_000)
        assert bob.next_deadline_ms == START_MS + LOST_AFTER_MS
        assert delivered(bob.advance(START_MS + LOST_AFTER_MS)) == ["a", "b"]
        assert bob.waiting == ("m",)

    def test_work_on_a_circle_grows_with_its_size_alone(self) -> None:
        """Four times as many messages that name their neighbours: four times the calls.

        A stranger makes a circle of any size that the buffer holds.
        """
        small, large = (calls_to_break_circle(size) for size in (250, 1_000))
        assert large < 5 * small

    def test_message_is_not_delivered_before_a_waiting_dependency(
        self,
    ) -> None:
        """One that came late and waits itself has its own time."""
        bob = participant("bob", QUIET)
        receive(bob, FRAMES.content("c", "alice", 3, history=["b"]))
        late = FRAMES.content("b", "alice", 2, history=["a"])
        receive(bob, late, now_ms=START_MS + 500_000)
        order = delivered(bob.advance(START_MS + LOST_AFTER_MS))
        order += delivered(bob.advance(START_MS + 500_000 + LOST_AFTER_MS))
        assert order == ["b", "c"]


@pytest.mark.rule("sds-schedule-2")
def test_sweep_delivers_free_messages_and_is_idempotent() -> None:
    """A second sweep at the same time returns nothing."""
    bob = waiting()
    late = FRAMES.content("n", "alice", 10, history=["y"])
    receive(bob, late, now_ms=START_MS + 1)
    assert delivered(bob.sweep_incoming(START_MS + LOST_AFTER_MS)) == ["m"]
    assert bob.missing == (HistoryEntry("y"),)
    before = bob.snapshot()
    assert bob.sweep_incoming(START_MS + LOST_AFTER_MS) == Step((), [])
    assert bob.snapshot() == before
