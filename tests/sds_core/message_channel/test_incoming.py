"""What is missing, and which messages wait for it.

SDS, "Periodic Incoming Buffer Sweep" and "Handling Missing Dependencies".
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Broadcast,
    Buffer,
    Cause,
    Delivered,
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
from tests.support.message_channel.waits import LOST_AFTER_MS, QUIET, delivered, waiting
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


class TestFullBuffer:
    def test_full_buffer_delivers_its_oldest_message(self) -> None:
        """Its missing dependencies stay missing; no message is dropped."""
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
                Delivered("b", "alice", 2, b"text"),
                Delivered("c", "alice", 3, b"text"),
            ]
        )
        assert bob.waiting == ("a",)
        assert [one.message_id for one in bob.missing] == ["x", "y", "z"]

    @pytest.mark.parametrize("is_restored", [False, True])
    def test_later_messages_do_not_wait_for_a_dependency_again(
        self, is_restored: bool
    ) -> None:
        """They might fill the buffer again and again; it is delivered late or lost."""
        bob = participant("bob", replace(QUIET, incoming_limit=1))
        receive(
            bob,
            FRAMES.content("b", "alice", 2, history=["x", "z"]),
            FRAMES.content("c", "alice", 3, history=["b"]),
        )
        assert bob.log == ("b", "c")
        if is_restored:
            bob = MessageChannel.restore(
                bob.snapshot(), random=Random(1), profile=bob.profile
            )
        named_again = FRAMES.content("d", "alice", 4, history=[("x", "carol")])
        assert delivered(receive(bob, named_again)) == ["d"]
        assert bob.missing[0] == HistoryEntry("x", b"", "carol")
        assert delivered(receive(bob, FRAMES.content("x", "carol", 1))) == ["x"]
        assert bob.log == ("x", "b", "c", "d")
        lost = bob.advance(START_MS + LOST_AFTER_MS).events
        assert lost == [IrretrievablyLost("z", b"", "")]

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


@pytest.mark.parametrize("profile", [SPEC, Profile.js_sds(), Profile.nim_sds()])
@pytest.mark.parametrize("kind", ["content", "sync"])
def test_history_longer_than_the_limit_of_missing_messages_leaves_nothing_waiting(
    profile: Profile, kind: str
) -> None:
    """A message does not wait for what is given up at once."""
    profile = replace(profile, missing_limit=1)
    frames = FrameFactory(CHANNEL, profile.dialect)
    alice = participant(profile=profile)
    history = [(f"x{number}", "carol") for number in range(4)]
    if kind == "sync":
        now = START_MS // profile.lamport_unit_ms
        receive(alice, frames.sync("bob", now, history=history))
    receive(alice, frames.content("m", "bob", history=history))
    (missing,) = alice.missing
    assert alice.waiting == ("m",)
    events = receive(alice, frames.content(missing.message_id, "carol"))
    assert [one.message_id for one in of_type(events, Delivered)][-1:] == ["m"]
    assert alice.waiting == ()
