"""What is missing, and how long it is waited for.

SDS, "Periodic Incoming Buffer Sweep", "Handling Missing Dependencies" and "Timeout for
Lost Messages".
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Broadcast,
    Buffer,
    Cause,
    Delivered,
    Event,
    Evicted,
    Ignored,
    IgnoredReason,
    IrretrievablyLost,
    MessageChannel,
    Missing,
    Profile,
    Received,
    Step,
)
from sds_core.wire import HistoryEntry
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import (
    CHANNEL,
    SPEC,
    hand_over,
    of_type,
    participant,
    receive,
    typed,
)

FRAMES = FrameFactory(CHANNEL)
# Neither sync messages nor repairs: what falls due is the end of a wait.
QUIET = replace(SPEC, sync_interval_ms=10**9, sync_least_share=None, repair=False)
LOST_AFTER_MS = 600_000


def waiting(profile: Profile = QUIET) -> MessageChannel:
    """A participant with a message that waits for another."""
    bob = participant("bob", profile)
    receive(bob, FRAMES.content("m", "alice", 9, history=[("x", "carol")]))
    return bob


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


def delivered(events: list[Event] | Step) -> list[str]:
    """The ids of what is delivered, in order."""
    told = events.events if isinstance(events, Step) else events
    return [event.message_id for event in of_type(told, Delivered)]


class TestMissing:
    @pytest.mark.rule(
        "sds-incoming-3",
        "sds-missing-1",
        "sds-missing-2",
        "sds-missing-3",
        "sds-sdk-waku-3",
    )
    def test_missing_message_is_reported_with_id_hint_and_sender(self) -> None:
        """Also the message that names it; the view has the same."""
        alice = participant()
        lost = alice.send(b"hi", START_MS, message_id="x").broadcasts[0]
        alice.note_retrieval_hint("x", b"hint")
        bob = participant("bob")
        named = alice.send(b"hi", START_MS, message_id="m")
        (missing,) = of_type(hand_over(named, bob), Missing)
        assert missing == Missing("x", b"hint", "alice", "m")
        assert bob.missing == (HistoryEntry("x", b"hint", "alice"),)
        # What the application has fetched comes in as anything else does.
        step = bob.receive(lost.value, START_MS, retrieval_hint=b"hint")
        assert delivered(step) == ["x", "m"]
        assert bob.missing == ()

    def test_missing_message_is_reported_once(self) -> None:
        """For any number of messages and syncs that name it, and of sweeps."""
        bob = waiting()
        events = receive(
            bob,
            FRAMES.content("n", "alice", 10, history=["x"]),
            FRAMES.sync("carol", history=["x"]),
        )
        assert of_type(events, Missing) == []
        assert bob.sweep_incoming(START_MS) == Step((), [])
        assert bob.advance(START_MS + 1) == Step([], [])

    @pytest.mark.rule("sds-sync-11", "sds-sync-12")
    def test_sync_message_reports_missing_messages_and_is_not_stored(self) -> None:
        """Only the messages that it names are awaited."""
        bob = participant("bob", QUIET)
        events = receive(bob, FRAMES.sync("alice", message_id="s", history=["x"]))
        assert of_type(events, Missing) == [Missing("x", b"", "", "s")]
        assert bob.waiting == ()
        assert delivered(receive(bob, FRAMES.content("x", "alice"))) == ["x"]
        assert bob.log == ("x",)

    def test_message_that_names_itself_does_not_wait_for_itself(self) -> None:
        """js-waku makes such messages if a payload is sent twice."""
        bob = participant("bob", QUIET)
        events = receive(bob, FRAMES.content("m", "alice", history=["m"]))
        assert delivered(events) == ["m"]

    def test_missing_messages_are_given_up_when_there_are_too_many(self) -> None:
        """The oldest is lost, and messages that wait only for it are delivered."""
        bob = participant("bob", replace(QUIET, missing_limit=2))
        receive(bob, FRAMES.content("m", "alice", 8, history=["z"]))
        receive(bob, FRAMES.sync("alice", history=["a"]))
        events = receive(bob, FRAMES.sync("alice", message_id="s", history=["b"]))
        assert typed(events[1:]) == typed(
            [
                Missing("b", b"", "", "s"),
                Evicted(Buffer.MISSING, "z"),
                IrretrievablyLost("z", b"", ""),
                Delivered("m", "alice", 8, b"text"),
            ]
        )
        assert [one.message_id for one in bob.missing] == ["a", "b"]

    def test_message_with_more_dependencies_than_may_be_missing_is_delivered(
        self,
    ) -> None:
        """When the last one arrives; those given up do not delay it."""
        bob = participant("bob", replace(QUIET, missing_limit=2))
        events = receive(bob, FRAMES.content("m", "alice", 8, history=["a", "b", "c"]))
        assert [one.message_id for one in of_type(events, IrretrievablyLost)] == ["a"]
        assert delivered(receive(bob, FRAMES.content("c", "alice", 3))) == ["c"]
        assert delivered(receive(bob, FRAMES.content("b", "alice", 2))) == ["b", "m"]

    def test_message_freed_by_giving_up_another_is_no_dependency_any_more(
        self,
    ) -> None:
        """A message delivered meanwhile is not awaited."""
        bob = participant("bob", replace(QUIET, missing_limit=1))
        receive(bob, FRAMES.content("x", "alice", 1, history=["z"]))
        events = receive(bob, FRAMES.content("m", "alice", 3, history=["x", "y"]))
        assert delivered(events) == ["x"]
        assert delivered(receive(bob, FRAMES.content("y", "alice", 2))) == ["y", "m"]


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


class TestFullBuffer:
    def test_full_buffer_delivers_its_oldest_message(self) -> None:
        """Its missing dependencies count as lost; no message is dropped."""
        bob = participant("bob", replace(QUIET, incoming_limit=2))
        receive(
            bob,
            FRAMES.content("c", "alice", 3, history=["x", "y"]),
            FRAMES.content("b", "alice", 2, history=["y"]),
        )
        events = receive(bob, FRAMES.content("a", "alice", 1, history=["z"]))
        assert typed(events) == typed(
            [
                Received("a", "alice"),
                Missing("z", b"", "", "a"),
                Evicted(Buffer.INCOMING, "c"),
                IrretrievablyLost("x", b"", ""),
                IrretrievablyLost("y", b"", ""),
                Delivered("b", "alice", 2, b"text"),
                Delivered("c", "alice", 3, b"text"),
            ]
        )
        assert bob.waiting == ("a",)

    def test_full_buffer_delivers_waiting_dependencies_first(self) -> None:
        """The dependency is in the buffer too."""
        bob = participant("bob", replace(QUIET, incoming_limit=2))
        receive(
            bob,
            FRAMES.content("c", "alice", 3, history=["b"]),
            FRAMES.content("b", "alice", 2, history=["a"]),
        )
        events = receive(bob, FRAMES.content("y", "alice", 9, history=["x"]))
        order = delivered(events) + delivered(bob.advance(START_MS + LOST_AFTER_MS))
        assert order == ["b", "c", "y"]

    def test_message_delivered_early_is_a_duplicate_later(
        self,
    ) -> None:
        """It is in the log."""
        bob = participant("bob", replace(QUIET, incoming_limit=1))
        first = FRAMES.content("a", "alice", 1, history=["x"])
        receive(bob, first, FRAMES.content("b", "alice", 2, history=["y"]))
        assert bob.log == ("a",)
        assert receive(bob, first) == [Ignored(IgnoredReason.DUPLICATE, "a")]


class TestBufferedMeetsDependencies:
    """js-waku's choice: what waits in the buffer counts as a met dependency."""

    JS = replace(QUIET, buffered_meets_dependencies=True)

    def test_message_is_delivered_before_its_waiting_dependency(self) -> None:
        """In either order of arrival."""
        bob = participant("bob", self.JS)
        receive(bob, FRAMES.content("b", "alice", 2, history=["a"]))
        assert delivered(
            receive(bob, FRAMES.content("c", "alice", 3, history=["b"]))
        ) == ["c"]
        bob = participant("bob", self.JS)
        receive(bob, FRAMES.content("c", "alice", 3, history=["b"]))
        assert delivered(
            receive(bob, FRAMES.content("b", "alice", 2, history=["a"]))
        ) == ["c"]
        assert bob.waiting == ("b",)

    def test_absent_dependency_is_still_awaited(self) -> None:
        """Its arrival delivers the message."""
        bob = participant("bob", self.JS)
        receive(bob, FRAMES.content("b", "alice", 2, history=["a"]))
        receive(bob, FRAMES.content("c", "alice", 3, history=["b", "x"]))
        assert bob.waiting == ("b", "c")
        assert delivered(receive(bob, FRAMES.content("x", "alice", 1))) == ["x", "c"]
        assert delivered(receive(bob, FRAMES.content("a", "alice", 1))) == ["a", "b"]

    def test_only_js_sds_has_this_option(self) -> None:
        """In the other two profiles a waiting dependency is not met."""
        assert Profile.js_sds().buffered_meets_dependencies
        assert not Profile.spec().buffered_meets_dependencies
        assert not Profile.nim_sds().buffered_meets_dependencies


@pytest.mark.rule("sds-assumption-2", "sds-incoming-2")
def test_missing_message_is_requested_from_others() -> None:
    """Without a store, our next frame requests it and a holder broadcasts it."""
    carol = participant("carol")
    (original,) = carol.send(b"hi", START_MS, message_id="x").broadcasts
    bob = waiting(replace(SPEC, t_min_ms=0, t_max_ms=1))
    hand_over(bob.send(b"hi", START_MS), carol)
    (answer,) = carol.sweep_repairs(START_MS).broadcasts
    assert answer == Broadcast(Cause.REPAIR, "x", original.value)
    assert delivered(bob.receive(answer.value, START_MS)) == ["x", "m"]


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
