"""Which requested messages a participant broadcasts again, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Broadcast,
    Buffer,
    Cause,
    Evicted,
    Ignored,
    IgnoredReason,
    MessageChannel,
    Profile,
    RepairAnswered,
    RepairRequestReceived,
    Step,
)
from sds_core.message_channel.repair import in_response_group, response_offset_ms
from sds_core.wire import Dialect, Frame, decode
from tests.support.frames import SECOND, START_MS, FrameFactory, value_of
from tests.support.message_channel.repair_steps import (
    GAPS,
    LATER,
    T_MAX_MS,
    asking,
    missing,
    requested,
    state,
    t_req_ms,
)
from tests.support.participants import (
    CHANNEL,
    LASTING,
    SPEC,
    of_type,
    participant,
    receive,
)

FRAMES = FrameFactory(CHANNEL)


class TestTakingRequests:
    @pytest.mark.rule(
        "sds-r-receive-9",
        "sds-r-receive-10",
        "sds-r-receive-11",
        "sds-r-state-4",
        "sds-r-state-5",
        "sds-r-tresp-2",
        "sds-r-tresp-3",
        "sds-r-tresp-5",
        "sds-r-concept-3",
    )
    @pytest.mark.parametrize("text", [b"text", b""], ids=["content", "sync"])
    def test_answers_are_queued_by_the_formula(self, text: bytes) -> None:
        """For messages that we have; the requesting frame is handled as usual."""
        bob = participant("bob")
        receive(bob, FRAMES.content("m1", "alice"), FRAMES.content("m2", "carol"))
        frame = FRAMES.content(
            "ask", "erin", text=text, requests=[("m1", "alice"), ("m2", "carol")]
        )
        events = receive(bob, frame, now_ms=START_MS + 7)
        assert state(bob).responses == {
            message_id: START_MS
            + 7
            + response_offset_ms("bob", sender, message_id, SPEC)
            for message_id, sender in (("m1", "alice"), ("m2", "carol"))
        }
        assert RepairRequestReceived(("m1", "m2"), "erin") in events
        assert ("ask" in bob.log) is bool(text)

    @pytest.mark.rule("sds-r-tresp-4")
    def test_requester_cannot_misstate_the_sender(self) -> None:
        """The stored sender counts, so all holders compute alike."""
        bob = participant("bob")
        receive(bob, FRAMES.content("m1", "alice"), asking("m1", sender="bob"))
        t_resp_ms = START_MS + response_offset_ms("bob", "alice", "m1", SPEC)
        assert state(bob).responses == {"m1": t_resp_ms}

    @pytest.mark.rule("sds-r-receive-7", "sds-r-state-5")
    def test_request_for_an_undelivered_message_is_not_answered(self) -> None:
        """A message that waits is not in the local history either."""
        bob = participant("bob")
        receive(bob, missing("m0", message_id="m1"))
        events = receive(bob, asking("m1", "unheard of"))
        assert of_type(events, RepairRequestReceived) == [
            RepairRequestReceived((), "erin")
        ]
        assert state(bob).responses == {}

    @pytest.mark.rule("sds-r-edge-4")
    def test_request_that_names_no_sender_is_not_answered(self) -> None:
        """Although we have the message."""
        bob = participant("bob")
        receive(bob, FRAMES.content("m1", "alice"), asking("m1", sender=""))
        assert state(bob).responses == {}

    @pytest.mark.rule("sds-r-edge-1")
    def test_message_that_is_requested_again_keeps_its_t_resp(self) -> None:
        """Twice in one frame, or in two."""
        bob = participant("bob")
        receive(bob, FRAMES.content("m1", "alice"))
        first = receive(bob, asking("m1", "m1"))
        assert RepairRequestReceived(("m1",), "erin") in first
        later = receive(bob, asking("m1", by="dave"), now_ms=START_MS + 1)
        assert RepairRequestReceived((), "dave") in later
        t_resp_ms = START_MS + response_offset_ms("bob", "alice", "m1", SPEC)
        assert state(bob).responses == {"m1": t_resp_ms}

    @pytest.mark.rule("sds-r-memory-1", "sds-r-memory-2", "sds-r-scenario-5")
    def test_full_buffer_reports_the_evicted_answer(self) -> None:
        """The one with the earliest T_resp."""
        bob = participant("bob", replace(SPEC, repair_buffer_limit=2))
        receive(bob, *(FRAMES.content(one, "alice") for one in GAPS[:3]))
        events = receive(bob, asking(*GAPS[:3]))
        first = min(
            GAPS[:3], key=lambda one: response_offset_ms("bob", "alice", one, SPEC)
        )
        assert of_type(events, Evicted) == [Evicted(Buffer.REPAIR_RESPONSES, first)]
        assert sorted(state(bob).responses) == [one for one in GAPS[:3] if one != first]

    @pytest.mark.rule("sds-r-security-4", "sds-r-security-5")
    def test_request_of_an_unknown_participant_is_answered(self) -> None:
        """The channel is secure, so all its members may request."""
        bob = participant("bob")
        bob.send(b"text", START_MS, message_id="own")
        receive(bob, asking("own", by="stranger", sender="bob"))
        assert list(state(bob).responses) == ["own"]

    def test_message_is_answered_only_while_it_is_stored(self) -> None:
        """Age and number are limited, and the oldest go first."""
        profile = replace(SPEC, repair_retention_ms=100, repair_retained_limit=2)
        bob = participant("bob", profile)
        receive(bob, *(FRAMES.content(one, "alice") for one in GAPS[:3]))
        receive(bob, asking(*GAPS), now_ms=START_MS + 100)
        assert sorted(state(bob).responses) == ["m2", "m3"]
        carol = participant("carol", profile)
        receive(carol, FRAMES.content("m1", "alice"))
        receive(carol, asking("m1"), now_ms=START_MS + 101)
        assert state(carol).responses == {}


class TestGroups:
    @staticmethod
    def ids(
        inside: bool, groups: int, *, name: str = "bob", sender: str = "alice"
    ) -> list[str]:
        """Some messages of a sender for which a participant answers, or does not."""
        hashed_with = SPEC.repair_hash
        ids = (f"m{number}" for number in range(40))
        return [
            one
            for one in ids
            if in_response_group(name, sender, one, groups, hashed_with) is inside
        ]

    @pytest.mark.rule("sds-r-receive-8", "sds-r-group-2", "sds-r-state-6")
    def test_request_outside_of_our_group_is_not_answered(self) -> None:
        """Inside it is."""
        inside, outside = self.ids(True, 3)[0], self.ids(False, 3)[0]
        # Two groups more would share the answering once all are heard of.
        bob = participant("bob", replace(SPEC, response_groups=3))
        receive(bob, *(FRAMES.content(one, "alice") for one in (inside, outside)))
        receive(bob, asking(inside, outside))
        assert list(state(bob).responses) == [inside]

    @pytest.mark.rule("sds-r-receive-8", "sds-r-group-2", "sds-r-state-6")
    def test_stored_message_is_not_answered_once_its_group_is_another(self) -> None:
        """With more participants there are more groups, and others answer."""
        bob = participant("bob", replace(SPEC, sync_put_off_limit=None))
        inside, outside = self.ids(True, 3)[0], self.ids(False, 3)[0]
        receive(bob, *(FRAMES.content(one, "alice") for one in (inside, outside)))
        receive(bob, *(FRAMES.sync(f"peer-{number}") for number in range(3 * 128)))
        assert sorted(state(bob).retained) == sorted([inside, outside])
        receive(bob, asking(inside, outside))
        assert list(state(bob).responses) == [inside]

    @pytest.mark.rule("sds-r-group-3", "sds-r-tresp-6")
    def test_own_message_is_always_answered(self) -> None:
        """With any number of groups."""
        bob = participant("bob", replace(SPEC, response_groups=1_000))
        for message_id in GAPS:
            bob.send(b"text", START_MS, message_id=message_id)
        receive(bob, asking(*GAPS, sender="bob"))
        assert state(bob).responses == dict.fromkeys(GAPS, START_MS)

    @pytest.mark.rule("sds-r-state-8", "sds-r-memory-4")
    def test_message_is_stored_only_inside_our_group(self) -> None:
        """And our own messages, for which we always answer."""
        inside, outside = self.ids(True, 3)[0], self.ids(False, 3)[0]
        bob = participant("bob", replace(SPEC, response_groups=3))
        receive(bob, *(FRAMES.content(one, "alice") for one in (inside, outside)))
        bob.send(b"text", START_MS, message_id="own")
        assert sorted(state(bob).retained) == sorted([inside, "own"])
        assert set(bob.log) == {inside, outside, "own"}

    @pytest.mark.rule("sds-r-config-3")
    @pytest.mark.parametrize(("heard_of", "groups"), [(254, 1), (255, 2)])
    def test_number_of_groups_follows_the_participants_seen(
        self, heard_of: int, groups: int
    ) -> None:
        """Ourselves included; no participant announces their number."""
        outside = self.ids(False, 2)[0]
        bob = participant("bob")
        receive(bob, FRAMES.content(outside, "alice"))
        for number in range(1, heard_of):
            receive(bob, FRAMES.sync(f"p{number}"), FRAMES.sync(f"p{number}"))
        receive(bob, asking(outside, by="p1"))
        assert (outside in state(bob).responses) is (groups == 1)

    @pytest.mark.rule("sds-r-config-3")
    @pytest.mark.parametrize("silent_ms", [3_600_000, 3_600_001])
    def test_number_of_groups_follows_those_who_have_left(self, silent_ms: int) -> None:
        """A participant silent for more than an hour no longer counts."""
        outside = self.ids(False, 2)[0]
        bob = participant("bob")
        receive(bob, *(FRAMES.sync(f"p{number}") for number in range(254)))
        now_ms = START_MS + silent_ms
        receive(bob, FRAMES.content(outside, "alice"), now_ms=now_ms)
        receive(bob, asking(outside), now_ms=now_ms)
        assert (outside in state(bob).responses) is (silent_ms > 3_600_000)

    @pytest.mark.parametrize(("limit", "groups"), [(254, 1), (255, 2)])
    def test_number_of_groups_is_limited(self, limit: int, groups: int) -> None:
        """For any number of invented names."""
        outside = self.ids(False, 2)[0]
        bob = participant("bob", replace(SPEC, participants_limit=limit))
        receive(bob, *(FRAMES.sync(f"p{number}") for number in range(600)))
        receive(bob, FRAMES.content(outside, "alice"), asking(outside))
        assert (outside in state(bob).responses) is (groups == 1)


class TestAnswering:
    @pytest.fixture
    def bob(self) -> MessageChannel:
        """Holds messages of alice, and will answer for m1."""
        bob = participant("bob")
        receive(bob, *(FRAMES.content(one, "alice") for one in GAPS))
        receive(bob, asking("m1"))
        return bob

    T_RESP_MS = START_MS + response_offset_ms("bob", "alice", "m1", SPEC)

    @pytest.mark.rule(
        "sds-r-sweep-4", "sds-r-sweep-6", "sds-r-state-7", "sds-r-state-9"
    )
    def test_original_bytes_are_broadcast_again(self, bob: MessageChannel) -> None:
        """Once, from T_resp on, with original sender and Lamport timestamp."""
        assert bob.sweep_repairs(self.T_RESP_MS - 1) == Step([], [])
        value = value_of(FRAMES.content("m1", "alice"))
        assert bob.sweep_repairs(self.T_RESP_MS) == Step(
            [Broadcast(Cause.REPAIR, "m1", value)], [RepairAnswered("m1")]
        )
        assert state(bob).responses == {}
        assert bob.sweep_repairs(self.T_RESP_MS + SECOND) == Step([], [])

    @pytest.mark.rule("sds-r-sweep-4", "sds-r-state-9", "sds-r-modified-1")
    def test_own_message_is_broadcast_again_as_it_was(self) -> None:
        """With filter and history of its first broadcast."""
        bob = participant("bob")
        first = bob.send(b"text", START_MS, message_id="own").broadcasts[0].value
        receive(bob, FRAMES.content("m1", "alice"), asking("own", sender="bob"))
        (again,) = bob.sweep_repairs(START_MS).broadcasts
        assert again == Broadcast(Cause.REPAIR, "own", first)

    @pytest.mark.rule("sds-r-sweep-3", "sds-r-tresp-6", "sds-r-modified-2")
    @pytest.mark.parametrize(
        ("profile", "period_ms"), [(SPEC, 5_000), (Profile.js_sds(), 10_000)]
    )
    @pytest.mark.parametrize("before", [0, 1, 2])
    def test_answer_comes_with_the_next_sweep(
        self, profile: Profile, period_ms: int, before: int
    ) -> None:
        """Within one period, whatever other deadlines there are."""
        bob = participant("bob", replace(profile, sync_interval_ms=10**9))
        first = bob.send(b"text", START_MS, message_id="own").broadcasts[0].value
        asked_ms = START_MS + before * period_ms + 1
        receive(bob, asking("own", sender="bob"), now_ms=asked_ms)
        sweep_ms = START_MS + (before + 1) * period_ms
        assert bob.next_deadline_ms == sweep_ms
        assert Broadcast(Cause.REPAIR, "own", first) not in (
            bob.advance(sweep_ms - 1).broadcasts
        )
        assert Broadcast(Cause.REPAIR, "own", first) in bob.advance(sweep_ms).broadcasts

    def test_answer_due_at_a_sweep_comes_with_that_sweep(self) -> None:
        """Even if it was requested at that moment."""
        bob = participant("bob")
        bob.send(b"text", START_MS, message_id="own")
        asked_ms = START_MS + 10_000
        receive(bob, asking("own", sender="bob"), now_ms=asked_ms)
        assert bob.next_deadline_ms == asked_ms
        assert bob.advance(asked_ms).events == [RepairAnswered("own")]

    def test_several_answers_go_most_overdue_first(self, bob: MessageChannel) -> None:
        """All due answers go in one sweep, in order of T_resp."""
        receive(bob, asking(*GAPS))
        events = bob.sweep_repairs(LATER).events
        order = sorted(
            GAPS, key=lambda one: response_offset_ms("bob", "alice", one, SPEC)
        )
        assert events == [RepairAnswered(one) for one in order]

    @pytest.mark.rule("sds-r-sweep-5")
    def test_message_no_longer_stored_is_not_broadcast(self) -> None:
        """Its entry is removed without an event."""
        bob = participant("bob", replace(SPEC, repair_retention_ms=SECOND))
        receive(bob, FRAMES.content("m1", "alice"), asking("m1"))
        assert response_offset_ms("bob", "alice", "m1", SPEC) > SECOND
        assert bob.sweep_repairs(LATER) == Step([], [])
        assert state(bob).responses == {}

    @pytest.mark.rule("sds-r-receive-2", "sds-r-concept-4")
    def test_answer_is_dropped_when_another_sends_it(self, bob: MessageChannel) -> None:
        """The rebroadcast is a duplicate that cancels our answer."""
        events = receive(bob, FRAMES.content("m1", "alice"))
        assert events == [Ignored(IgnoredReason.DUPLICATE, "m1")]
        assert state(bob).responses == {}
        assert bob.sweep_repairs(LATER) == Step([], [])

    @pytest.mark.rule("sds-r-receive-2")
    def test_answer_is_dropped_when_another_sends_our_message(self) -> None:
        """It is our own message, and cancels our answer."""
        bob = participant("bob")
        value = bob.send(b"text", START_MS, message_id="own").broadcasts[0].value
        receive(bob, asking("own", sender="bob"))
        events = receive(bob, decode(value))
        assert events == [Ignored(IgnoredReason.OWN_ECHO, "own")]
        assert bob.sweep_repairs(LATER) == Step([], [])

    def test_dropped_answer_is_no_deadline(self) -> None:
        """A frame without any other effect updates the deadline too."""
        bob = participant("bob", replace(SPEC, sync_interval_ms=10**9))
        receive(bob, FRAMES.content("m1", "alice"), asking("m1"))
        assert bob.next_deadline_ms < state(bob).next_sync_ms
        receive(bob, FRAMES.content("m1", "alice"))
        assert bob.next_deadline_ms == state(bob).next_sync_ms

    @pytest.mark.parametrize(
        "frames",
        [FrameFactory("other"), FrameFactory(CHANNEL, Dialect.NIM)],
        ids=["channel", "dialect"],
    )
    def test_frame_of_another_channel_drops_no_answer(
        self, bob: MessageChannel, frames: FrameFactory
    ) -> None:
        """There the same id is another message."""
        receive(bob, frames.content("m1", "alice"))
        assert list(state(bob).responses) == ["m1"]

    @pytest.mark.parametrize("sender", ["alice", "eve", "bob"])
    @pytest.mark.parametrize("make", [FRAMES.sync, FRAMES.ephemeral])
    def test_frame_that_is_no_content_message_drops_no_answer(
        self, bob: MessageChannel, make: Callable[..., Frame], sender: str
    ) -> None:
        """It may have the id but does not deliver the message."""
        receive(bob, make(sender, message_id="m1"))
        assert list(state(bob).responses) == ["m1"]
        assert RepairAnswered("m1") in bob.sweep_repairs(self.T_RESP_MS).events

    def test_retry_of_a_request_is_not_answered_again(
        self, bob: MessageChannel
    ) -> None:
        """The same frame again is a duplicate."""
        carrier = FRAMES.content("ask", "erin", requests=[("m2", "alice")])
        receive(bob, carrier)
        answered = bob.sweep_repairs(LATER).events
        assert sorted(one.message_id for one in answered) == ["m1", "m2"]
        assert of_type(answered, RepairAnswered) == answered
        receive(bob, carrier, now_ms=LATER)
        assert state(bob).responses == {}

    def test_answered_message_can_be_requested_again(self) -> None:
        """The first answer may have been lost."""
        bob = participant("bob", LASTING)
        receive(bob, FRAMES.content("m1", "alice"), asking("m1"))
        bob.sweep_repairs(LATER)
        receive(bob, asking("m1"), now_ms=LATER)
        assert bob.sweep_repairs(LATER + T_MAX_MS).events == [RepairAnswered("m1")]

    def test_requests_and_answers_survive_a_restart(self, bob: MessageChannel) -> None:
        """They are in the snapshot with their times."""
        receive(bob, missing("gap"))
        restored = MessageChannel.restore(
            bob.snapshot(), random=Random(1), profile=SPEC
        )
        assert restored.next_deadline_ms == bob.next_deadline_ms
        due_ms = t_req_ms("bob", "gap")
        assert requested(restored.send(b"text", due_ms)) == ["gap"]
        assert restored.sweep_repairs(self.T_RESP_MS) == bob.sweep_repairs(
            self.T_RESP_MS
        )
