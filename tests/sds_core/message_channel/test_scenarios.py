"""Several participants, frame by frame.

After the scenarios that js-waku, nim-sds and logos-delivery test their own libraries
with, in our own words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Acknowledged,
    Broadcast,
    Cause,
    Delivered,
    EphemeralReceived,
    Event,
    Evidence,
    Ignored,
    IgnoredReason,
    IrretrievablyLost,
    MessageChannel,
    Missing,
    PossiblyAcknowledged,
    Profile,
    Step,
)
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    hand_over,
    of_type,
    participant,
    receive,
)

FRAMES = FrameFactory(CHANNEL)
QUIET = replace(SPEC, sync_interval_ms=10**9, sync_least_share=None, repair=False)
ALL = pytest.mark.parametrize(
    "profile",
    [Profile.spec(), Profile.js_sds(), Profile.nim_sds()],
    ids=["spec", "js", "nim"],
)


def send_all(sender: MessageChannel, *message_ids: str) -> list[Step]:
    """Messages one after the other; nobody has received them yet."""
    return [
        sender.send(message_id.encode(), START_MS, message_id=message_id)
        for message_id in message_ids
    ]


def delivered(events: Iterable[Event]) -> list[str]:
    """The ids of what is delivered, in order."""
    return [event.message_id for event in of_type(events, Delivered)]


class TestAcknowledgement:
    """js-waku message_channel.spec.ts; nim-sds test_reliability.nim."""

    def test_reply_acknowledges_as_far_as_its_history_reaches(self) -> None:
        """Of three messages the last two; the filter holds the first possibly."""
        alice, bob = participant(profile=QUIET), participant("bob", QUIET)
        receive(alice, FRAMES.sync("carol"))
        for step in send_all(alice, "a", "b", "c"):
            hand_over(step, bob)
        events = hand_over(bob.send(b"reply", START_MS), alice)
        assert of_type(events, Acknowledged) == [
            Acknowledged("b", "bob", Evidence.CAUSAL_HISTORY),
            Acknowledged("c", "bob", Evidence.CAUSAL_HISTORY),
        ]
        assert alice.unacknowledged == ()
        assert alice.possibly_acknowledged == ("a",)

    def test_filter_of_a_second_participant_acknowledges_the_rest(self) -> None:
        """Messages that no participant received are unchanged."""
        alice = participant(profile=QUIET)
        bob, carol = participant("bob", QUIET), participant("carol", QUIET)
        receive(alice, FRAMES.sync("carol"))
        steps = send_all(alice, "a", "b", "c", "d", "unseen")
        for step in steps[:4]:
            hand_over(step, bob, carol)
        events = hand_over(bob.send(b"reply", START_MS), alice)
        assert of_type(events, PossiblyAcknowledged) == [
            PossiblyAcknowledged("a", "bob", 1),
            PossiblyAcknowledged("b", "bob", 1),
        ]
        events = hand_over(carol.sync(START_MS), alice)
        assert of_type(events, Acknowledged) == [
            Acknowledged("a", "carol", Evidence.BLOOM_FILTER),
            Acknowledged("b", "carol", Evidence.BLOOM_FILTER),
        ]
        assert alice.unacknowledged == ("unseen",)
        assert alice.possibly_acknowledged == ()

    @ALL
    def test_only_messages_that_arrived_are_acknowledged(
        self, profile: Profile
    ) -> None:
        """Three of six; in nim-sds one filter is enough."""
        alice, bob = participant(profile=profile), participant("bob", profile)
        ids = [f"m{number}" for number in range(6)]
        for step in send_all(alice, *ids)[:3]:
            hand_over(step, bob)
        hand_over(bob.sync(START_MS), alice)
        assert alice.unacknowledged == tuple(ids[3:])

    def test_lost_message_is_acknowledged_after_its_retry(self) -> None:
        """The retry is the same frame, and the next sync message names it."""
        alice, bob = participant(profile=QUIET), participant("bob", QUIET)
        (lost,) = send_all(alice, "m")
        hand_over(bob.sync(START_MS), alice)
        assert alice.unacknowledged == ("m",)
        retry = alice.advance(START_MS + 30_000)
        assert retry.broadcasts == [
            Broadcast(Cause.RETRY, "m", lost.broadcasts[0].value)
        ]
        assert delivered(hand_over(retry, bob)) == ["m"]
        events = hand_over(bob.sync(START_MS + 30_000), alice)
        assert of_type(events, Acknowledged) == [
            Acknowledged("m", "bob", Evidence.CAUSAL_HISTORY)
        ]
        assert alice.advance(START_MS + 90_000).broadcasts == []

    def test_message_is_acknowledged_by_a_participant_that_joins_later(self) -> None:
        """As long as it is being retried."""
        alice = participant(profile=QUIET)
        send_all(alice, "m")
        for retry in range(1, 4):
            alice.advance(START_MS + retry * 30_000)
        joined_ms = START_MS + 120_000
        bob = participant("bob", QUIET, now_ms=joined_ms)
        hand_over(alice.advance(joined_ms), bob)
        hand_over(bob.sync(joined_ms), alice)
        assert alice.unacknowledged == ()

    def test_message_that_waits_at_its_receiver_is_possibly_acknowledged(self) -> None:
        """It is in the receiver's filter, and not yet in a history."""
        alice, bob = participant(profile=QUIET), participant("bob", QUIET)
        receive(alice, FRAMES.sync("carol"))
        first, _, third = send_all(alice, "a", "b", "c")
        hand_over(first, bob)
        hand_over(third, bob)
        events = hand_over(bob.send(b"reply", START_MS), alice)
        assert of_type(events, Acknowledged) == [
            Acknowledged("a", "bob", Evidence.CAUSAL_HISTORY)
        ]
        assert alice.possibly_acknowledged == ("c",)
        assert alice.unacknowledged == ("b",)


class TestDependencies:
    """js-waku message_channel.spec.ts; nim-sds; logos-delivery."""

    def test_all_missing_messages_of_a_history_are_reported(self) -> None:
        """The oldest first."""
        profile = replace(QUIET, causal_history_size=4)
        alice, bob = participant(profile=profile), participant("bob", profile)
        *_, last = send_all(alice, "a", "b", "c", "d", "e", "f")
        events = hand_over(last, bob)
        assert [event.message_id for event in of_type(events, Missing)] == list("bcde")

    @pytest.mark.parametrize("profile", [Profile.spec(), Profile.nim_sds()])
    def test_messages_that_arrive_backwards_are_delivered_forwards(
        self, profile: Profile
    ) -> None:
        """In a chain of three, one after the other is missing."""
        profile = replace(profile, causal_history_size=1)
        alice, bob = participant(profile=profile), participant("bob", profile)
        first, second, third = send_all(alice, "a", "b", "c")
        assert delivered(hand_over(third, bob)) == []
        assert [one.message_id for one in bob.missing] == ["b"]
        assert delivered(hand_over(second, bob)) == []
        assert [one.message_id for one in bob.missing] == ["a"]
        assert delivered(hand_over(first, bob)) == ["a", "b", "c"]
        assert bob.log == alice.log
        assert bob.waiting == bob.missing == ()

    def test_js_sds_delivers_each_message_that_has_its_dependency(self) -> None:
        """The log is in order all the same."""
        profile = replace(Profile.js_sds(), causal_history_size=1)
        alice, bob = participant(profile=profile), participant("bob", profile)
        first, second, third = send_all(alice, "a", "b", "c")
        hand_over(third, bob)
        assert delivered(hand_over(second, bob)) == ["c"]
        assert delivered(hand_over(first, bob)) == ["a", "b"]
        assert bob.log == alice.log == ("a", "b", "c")

    def test_message_fetched_by_its_hint_frees_waiting_messages(self) -> None:
        """The application queries a store for the hints in `Missing`."""
        alice, bob = participant(profile=QUIET), participant("bob", QUIET)
        store = {}
        for step in send_all(alice, "a", "b"):
            (broadcast,) = step.broadcasts
            hint = f"hash of {broadcast.message_id}".encode()
            store[hint] = broadcast.value
            alice.note_retrieval_hint(broadcast.message_id, hint)
        events = hand_over(alice.send(b"hi", START_MS, message_id="c"), bob)
        for missing in of_type(events, Missing):
            step = bob.receive(
                store[missing.retrieval_hint],
                START_MS,
                retrieval_hint=missing.retrieval_hint,
            )
            events += step.events
        assert delivered(events) == ["a", "b", "c"]
        assert bob.log == alice.log

    def test_lost_message_can_still_be_received(self) -> None:
        """Lost only means that it is no longer awaited."""
        alice, bob = participant(profile=QUIET), participant("bob", QUIET)
        lost, named = send_all(alice, "a", "b")
        hand_over(named, bob)
        over_ms = START_MS + 600_000
        events = bob.advance(over_ms).events
        assert of_type(events, IrretrievablyLost) == [
            IrretrievablyLost("a", b"", "alice")
        ]
        assert delivered(events) == ["b"]
        assert delivered(hand_over(lost, bob, now_ms=over_ms)) == ["a"]
        assert bob.log == alice.log == ("a", "b")

    def test_late_participant_misses_messages_that_the_first_names(self) -> None:
        """Older messages are in no history any more."""
        alice = participant(profile=QUIET)
        *_, last = send_all(alice, "a", "b", "c", "d")
        late = participant("late", QUIET)
        hand_over(last, late)
        assert [one.message_id for one in late.missing] == ["b", "c"]


class TestLog:
    """js-waku message_channel.spec.ts and mem_local_history.spec.ts."""

    @pytest.mark.rule("sds-state-1e", "sds-conflict-1")
    def test_all_logs_are_equal_in_the_end(self) -> None:
        """Two send at the same time, and each receives in another order."""
        names = ("alice", "bob", "carol")
        everybody = [participant(name, QUIET) for name in names]
        alice, bob, carol = everybody
        ours = send_all(alice, "z1", "z2")
        theirs = send_all(bob, "a1", "a2")
        for step in theirs:
            hand_over(step, alice)
        for step in ours:
            hand_over(step, bob)
        for step in (theirs[1], ours[1], ours[0], theirs[0]):
            hand_over(step, carol)
        # Equal timestamps, so by id.
        assert {one.log for one in everybody} == {("a1", "z1", "a2", "z2")}

    def test_restarted_participant_does_not_deliver_twice(self) -> None:
        """nim-sds test_persistence.nim; for other state see test_snapshot.py."""
        alice, bob = participant(profile=QUIET), participant("bob", QUIET)
        (step,) = send_all(alice, "a")
        hand_over(step, bob)
        again = MessageChannel.restore(bob.snapshot(), random=Random(1), profile=QUIET)
        assert hand_over(step, again) == [Ignored(IgnoredReason.DUPLICATE, "a")]


class TestSync:
    """js-waku reliable_channel_sync.spec.ts; logos-delivery."""

    def test_sync_message_names_a_message_that_another_missed(self) -> None:
        """Its history shows a participant what it never received."""
        alice = participant(profile=replace(SPEC, retry_unacknowledged_ms=10**9))
        bob = participant("bob")
        send_all(alice, "a")
        now_ms = alice.next_deadline_ms
        step = alice.advance(now_ms)
        assert [one.cause for one in step.broadcasts] == [Cause.SYNC]
        events = hand_over(step, bob, now_ms=now_ms)
        assert [one.message_id for one in of_type(events, Missing)] == ["a"]
        assert delivered(events) == []

    def test_own_sync_message_acknowledges_nothing(self) -> None:
        """It names what we sent ourselves."""
        alice = participant()
        send_all(alice, "a")
        hand_over(alice.sync(START_MS), alice)
        assert alice.unacknowledged == ("a",)


class TestApart:
    """logos-delivery test_reliable_channel_send_receive.nim."""

    def test_channels_on_one_transport_are_separate(self) -> None:
        """Every participant receives every frame."""
        here = [participant(name, QUIET, channel_id="here") for name in ("a", "b")]
        there = [participant(name, QUIET, channel_id="there") for name in ("a", "b")]
        step = here[0].send(b"hi", START_MS, message_id="m")
        events = hand_over(step, *there)
        assert events == [Ignored(IgnoredReason.FOREIGN_CHANNEL, "m", "here")] * 2
        assert delivered(hand_over(step, here[1])) == ["m"]
        assert there[1].log == ()

    def test_dialects_on_one_transport_are_separate(self) -> None:
        """A frame of one cannot be read in the other."""
        spec, nim = participant("a", QUIET), participant("b", Profile.nim_sds())
        for sender, receiver in ((spec, nim), (nim, spec)):
            step = sender.send(b"hi", START_MS, message_id="m")
            (event,) = of_type(hand_over(step, receiver), Ignored)
            assert event.reason is IgnoredReason.FOREIGN_DIALECT

    def test_ephemeral_message_overtakes_waiting_messages(self) -> None:
        """It is delivered at once in any state of the receiver."""
        alice, bob = participant(profile=QUIET), participant("bob", QUIET)
        _, second = send_all(alice, "a", "b")
        hand_over(second, bob)
        step = alice.send_ephemeral(b"typing", START_MS)
        assert hand_over(step, bob) == [
            EphemeralReceived(frame_of(step).message_id, "alice", b"typing")
        ]
        assert bob.waiting == ("b",)

    def test_js_and_spec_share_a_channel(self) -> None:
        """They behave differently but write the same frames."""
        js, spec = participant("js", Profile.js_sds()), participant("spec")
        for number in range(5):
            hand_over(js.send(b"hi", START_MS, message_id=f"js{number}"), spec)
            hand_over(spec.send(b"hi", START_MS, message_id=f"spec{number}"), js)
        assert js.log == spec.log
        assert len(js.log) == 10
        hand_over(spec.sync(START_MS), js)
        hand_over(js.sync(START_MS), spec)
        assert js.unacknowledged == spec.unacknowledged == ()

    def test_reply_follows_a_foreign_frame_in_the_log(self) -> None:
        """Whatever our clock says."""
        frames = FrameFactory()
        bob = participant("bob", QUIET)
        receive(bob, frames.content("m", "alice", START_MS + 10_000))
        reply = frame_of(bob.send(b"reply", START_MS, message_id="reply"))
        assert reply.lamport == START_MS + 10_001
        assert bob.log == ("m", "reply")
