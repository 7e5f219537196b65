"""What one participant does for repairs when it sends, receives, sweeps and syncs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    AfterRequest,
    Broadcast,
    Buffer,
    Cause,
    Delivered,
    Event,
    Evicted,
    FrameTooLarge,
    Ignored,
    IgnoredReason,
    IrretrievablyLost,
    MessageChannel,
    Missing,
    Profile,
    RepairAnswered,
    RepairExpired,
    RepairRequested,
    RepairRequestReceived,
    Step,
    SyncSent,
    snapshot,
)
from sds_core.message_channel.repair import (
    in_response_group,
    request_offset_ms,
    response_offset_ms,
)
from sds_core.wire import Dialect, Frame, HistoryEntry, decode
from tests.support.frames import SECOND, START_MS, FrameFactory, value_of
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    of_type,
    participant,
    receive,
)

FRAMES = FrameFactory(CHANNEL)
T_MAX_MS = SPEC.t_max_ms
LATER = START_MS + T_MAX_MS
"""When every request that was queued at the start is due."""


class Draw(Random):
    """Draws one number in [0, 1) until it is changed."""

    def __init__(self, drawn: float) -> None:
        super().__init__(0)
        self.drawn = drawn

    def random(self) -> float:
        """The number."""
        return self.drawn


def state(channel: MessageChannel) -> snapshot.State:
    """All that a participant remembers."""
    return snapshot.unpack(channel.snapshot())


def t_req_ms(
    name: str, message_id: str, now_ms: int = START_MS, profile: Profile = SPEC
) -> int:
    """When a participant asks for what it misses since now."""
    return now_ms + request_offset_ms(name, message_id, profile)


def missing(*message_ids: str, by: str = "alice", message_id: str = "last") -> Frame:
    """A message of alice that names others of hers."""
    return FRAMES.content(
        message_id, by, history=[(one, "alice") for one in message_ids]
    )


def asking(*message_ids: str, by: str = "erin", sender: str = "alice") -> Frame:
    """A sync message that requests messages."""
    return FRAMES.sync(by, requests=[(one, sender) for one in message_ids])


def requested(step: Step) -> list[str]:
    """Ids that the one frame of a step requests."""
    return [one.message_id for one in frame_of(step).repair_request]


def by_t_req(name: str, message_ids: list[str]) -> list[str]:
    """The ids in the order in which a participant asks for them."""
    return sorted(message_ids, key=lambda one: request_offset_ms(name, one, SPEC))


GAPS = [f"m{number}" for number in range(1, 6)]


class TestNoticing:
    @pytest.mark.rule(
        "sds-r-receive-3",
        "sds-r-receive-4",
        "sds-r-receive-5",
        "sds-r-treq-2",
        "sds-r-treq-3",
        "sds-r-state-1",
        "sds-r-state-3",
    )
    @pytest.mark.parametrize("text", [b"text", b""], ids=["content", "sync"])
    def test_missing_dependencies_are_queued_by_the_formula(self, text: bytes) -> None:
        """With own id and message id; hint and sender are those in the history."""
        bob = participant("bob")
        history = (
            HistoryEntry("m1", b"hint", "alice"),
            HistoryEntry("m2", b"", "dave"),
        )
        frame = FRAMES.content("last", "carol", text=text)
        receive(bob, frame._replace(causal_history=history), now_ms=START_MS + 7)
        assert state(bob).requests == [
            (one, t_req_ms("bob", one.message_id, START_MS + 7), None)
            for one in history
        ]

    @pytest.mark.rule("sds-r-concept-2")
    def test_two_participants_queue_one_message_for_two_times(self) -> None:
        """T_req depends on the participant's id."""
        queued = set()
        for name in ("bob", "carol"):
            channel = participant(name)
            receive(channel, missing("m1"))
            queued.add(state(channel).requests[0][1])
        assert len(queued) == 2

    @pytest.mark.rule("sds-r-edge-4")
    @pytest.mark.parametrize(
        ("after_request", "counts_from_ms"),
        [
            (AfterRequest.ASK_AGAIN, START_MS),
            (AfterRequest.ONCE, START_MS + 5),
            (AfterRequest.FORGET, START_MS + 5),
        ],
    )
    def test_message_of_an_unknown_sender_is_not_requested(
        self, after_request: AfterRequest, counts_from_ms: int
    ) -> None:
        """Until a history names the sender; T_req may be over by then."""
        bob = participant("bob", replace(SPEC, after_request=after_request))
        events = receive(bob, FRAMES.content("first", "carol", history=["m1"]))
        assert of_type(events, Missing) == [Missing("m1", b"", "", "first")]
        assert state(bob).requests == []
        receive(bob, missing("m1"), now_ms=START_MS + 5)
        assert state(bob).requests == [
            (
                HistoryEntry("m1", b"", "alice"),
                t_req_ms("bob", "m1", counts_from_ms),
                None,
            )
        ]

    def test_t_req_of_a_message_missed_for_long_is_not_over_by_more_than_t_max(
        self,
    ) -> None:
        """Or its request would expire at once, before any frame could carry it."""
        bob = participant("bob")
        receive(bob, FRAMES.content("first", "carol", history=["m1"]))
        now_ms = START_MS + 2 * T_MAX_MS
        receive(bob, missing("m1"), now_ms=now_ms)
        (queued,) = state(bob).requests
        assert queued[1] == t_req_ms("bob", "m1", now_ms - T_MAX_MS)
        assert of_type(bob.advance(now_ms).events, RepairExpired) == []
        assert requested(bob.send(b"text", now_ms)) == ["m1"]

    @pytest.mark.rule("sds-r-edge-1")
    def test_message_that_is_named_again_keeps_its_t_req(self) -> None:
        """Twice in one history, or in a later one."""
        bob = participant("bob")
        receive(bob, missing("m1", "m1"))
        receive(bob, missing("m1", message_id="next"), now_ms=START_MS + 5_000)
        (queued,) = state(bob).requests
        assert queued[1] == t_req_ms("bob", "m1")

    def test_message_that_waits_or_is_delivered_is_not_requested(self) -> None:
        """Only messages that never arrived are."""
        bob = participant("bob")
        receive(bob, FRAMES.content("m1", "alice"), missing("m2", message_id="m3"))
        receive(bob, missing("m1", "m3"))
        assert [one.message_id for one, *_ in state(bob).requests] == ["m2"]

    @pytest.mark.rule("sds-r-receive-1")
    @pytest.mark.parametrize("deliverable", [True, False])
    def test_message_that_arrives_is_requested_no_more(self, deliverable: bool) -> None:
        """Even if it has to wait for another."""
        bob = participant("bob")
        history = [] if deliverable else ["m0"]
        receive(bob, missing("m1"), FRAMES.content("m1", "alice", history=history))
        assert state(bob).requests == []
        assert requested(bob.send(b"text", LATER)) == []

    @pytest.mark.rule("sds-r-memory-1", "sds-r-memory-2", "sds-r-scenario-5")
    def test_full_buffer_reports_the_evicted_request(self) -> None:
        """The one with the earliest T_req goes; its message is still missing."""
        bob = participant("bob", replace(SPEC, repair_buffer_limit=4))
        events = receive(bob, missing(*GAPS))
        order = by_t_req("bob", GAPS)
        assert of_type(events, Evicted) == [Evicted(Buffer.REPAIR_REQUESTS, order[0])]
        kept = sorted(one.message_id for one, *_ in state(bob).requests)
        assert kept == sorted(order[1:])
        assert len(bob.missing) == 5

    @pytest.mark.rule("sds-r-memory-2")
    def test_evicted_request_that_is_queued_again_keeps_its_t_req(
        self,
    ) -> None:
        """It counts from when the message was first missing."""
        bob = participant("bob", replace(SPEC, repair_buffer_limit=1))
        first, second = by_t_req("bob", GAPS[:2])
        receive(bob, missing(first, second))
        assert [one.message_id for one, *_ in state(bob).requests] == [second]
        receive(bob, FRAMES.content(second, "alice"))
        receive(bob, missing(first, message_id="next"), now_ms=START_MS + 5_000)
        assert state(bob).requests == [
            (HistoryEntry(first, b"", "alice"), t_req_ms("bob", first), None)
        ]

    def test_vain_requests_do_not_block_later_ones(self) -> None:
        """A thousand invented ids fill the buffer; js-waku never drops them."""
        profile = Profile.js_sds()
        bob = participant("bob", profile)
        invented = [(f"x{number}", "eve") for number in range(1_000)]
        receive(bob, *(FRAMES.sync("eve", history=invented[at::2]) for at in (0, 1)))
        # With nothing to ask for there is no sync message: the log is empty.
        while bob.sync(LATER).broadcasts:
            pass
        assert len(state(bob).requests) == profile.repair_buffer_limit
        real = missing("real", message_id="m")
        receive(bob, real, now_ms=LATER)
        assert len(state(bob).requests) == profile.repair_buffer_limit
        asked = bob.send(b"text", t_req_ms("bob", "real", LATER, profile))
        assert requested(asked) == ["real"]


class TestCarrying:
    @pytest.mark.rule(
        "sds-r-send-1", "sds-r-send-3", "sds-r-send-4", "sds-r-send-5", "sds-r-send-7"
    )
    def test_due_request_goes_with_the_next_message(self) -> None:
        """With id, hint and original sender."""
        bob = participant("bob")
        history = (
            HistoryEntry("m1", b"hint", "alice"),
            HistoryEntry("m2", b"", "dave"),
        )
        frame = FRAMES.content("last", "carol")
        receive(bob, frame._replace(causal_history=history))
        step = bob.send(b"text", LATER, message_id="own")
        order = by_t_req("bob", ["m1", "m2"])
        carrier = frame_of(step)
        assert carrier == carrier._replace(
            repair_request=sorted(history, key=lambda one: order.index(one.message_id))
        )
        assert of_type(step.events, RepairRequested) == [
            RepairRequested(tuple(order), "own")
        ]
        assert carrier.content == b"text"
        assert bob.unacknowledged == ("own",)
        assert bob.log == ("own",)

    @pytest.mark.rule("sds-r-send-6", "sds-r-concept-2")
    def test_request_that_is_not_due_is_not_carried(self) -> None:
        """The field is absent before T_req and present from then on."""
        due_ms = t_req_ms("bob", "m1")
        bob = participant("bob")
        receive(bob, missing("m1"))
        early = bob.send(b"text", due_ms - 1)
        assert requested(early) == []
        assert of_type(early.events, RepairRequested) == []
        assert requested(bob.send(b"more", due_ms)) == ["m1"]

    @pytest.mark.rule("sds-r-send-2", "sds-r-performance-3", "sds-r-state-2")
    def test_five_requests_need_two_messages(self) -> None:
        """The three with the lowest T_req go first; each is carried once."""
        bob = participant("bob")
        receive(bob, missing(*GAPS))
        order = by_t_req("bob", GAPS)
        carried = [
            requested(bob.send(text, LATER)) for text in (b"one", b"two", b"three")
        ]
        assert carried == [order[:3], order[3:], []]

    def test_number_of_requests_in_a_message_can_be_set(self) -> None:
        """The limit is an option."""
        bob = participant("bob", replace(SPEC, requests_per_message=2))
        receive(bob, missing(*GAPS))
        assert requested(bob.send(b"text", LATER)) == by_t_req("bob", GAPS)[:2]

    def test_requests_of_a_refused_message_go_with_the_next(self) -> None:
        """A message that is too large is not sent."""
        bob = participant("bob")
        receive(bob, missing("m1"))
        with pytest.raises(FrameTooLarge):
            bob.send(bytes(SPEC.max_frame_bytes), LATER)
        assert requested(bob.send(b"text", LATER)) == ["m1"]

    def test_ephemeral_message_carries_no_request(self) -> None:
        """It takes part in nothing."""
        bob = participant("bob")
        receive(bob, missing("m1"))
        assert requested(bob.send_ephemeral(b"text", LATER)) == []
        assert requested(bob.send(b"text", LATER)) == ["m1"]

    @pytest.mark.rule("sds-r-wire-1", "sds-r-wire-2")
    @pytest.mark.parametrize(
        ("dialect", "profile"),
        [(Dialect.SPEC, SPEC), (Dialect.NIM, Profile.nim_sds())],
        ids=["spec", "nim"],
    )
    def test_request_is_field_13_and_sender_field_3(
        self, dialect: Dialect, profile: Profile
    ) -> None:
        """Compared byte by byte."""
        bob = participant("bob", profile)
        receive(
            bob,
            FrameFactory(CHANNEL, dialect).content(
                "last", "carol", history=[("m1", "alice")]
            ),
        )
        (broadcast,) = bob.send(b"text", START_MS + profile.t_max_ms).broadcasts
        entry = b"\x0a\x02m1" + b"\x1a\x05alice"
        assert bytes([13 << 3 | 2, len(entry)]) + entry in broadcast.value

    @pytest.mark.rule("sds-r-modified-3")
    def test_senders_are_named_in_later_histories(self) -> None:
        """Our own and those of others, however a message arrived."""
        bob = participant("bob", replace(SPEC, causal_history_size=3))
        receive(bob, FRAMES.content("m2", "carol", 2, history=[("m1", "alice")]))
        receive(bob, FRAMES.content("m1", "alice", 1))
        bob.send(b"text", START_MS, message_id="own")
        history = frame_of(bob.send(b"more", START_MS)).causal_history
        named = [(one.message_id, one.sender_id) for one in history]
        assert named == [("m1", "alice"), ("m2", "carol"), ("own", "bob")]


class TestRequestOfAnother:
    @pytest.mark.rule("sds-r-receive-6")
    @pytest.mark.parametrize("after_request", list(AfterRequest))
    def test_message_that_another_requests_is_not_requested_too(
        self, after_request: AfterRequest
    ) -> None:
        """The answer reaches all participants."""
        bob = participant("bob", replace(SPEC, after_request=after_request))
        receive(bob, missing("m1", "m2"))
        receive(bob, asking("m1"), now_ms=START_MS + SECOND)
        assert requested(bob.send(b"text", LATER)) == ["m2"]

    @pytest.mark.rule("sds-r-receive-6", "sds-r-edge-2")
    def test_request_is_queued_anew_if_that_of_another_finds_no_answer(self) -> None:
        """T_max later, with a new wait of its own."""
        bob = participant("bob")
        receive(bob, missing("m1"))
        receive(bob, asking("m1"), now_ms=START_MS + SECOND)
        held_ms = START_MS + SECOND + T_MAX_MS
        assert of_type(bob.advance(held_ms - 1).events, RepairExpired) == []
        assert RepairExpired("m1") in bob.advance(held_ms).events
        again_ms = t_req_ms("bob", "m1", held_ms)
        assert requested(bob.send(b"text", again_ms - 1)) == []
        assert requested(bob.send(b"more", again_ms)) == ["m1"]

    def test_request_for_an_unknown_message_is_reported(self) -> None:
        """It says that some participant misses a message."""
        events = receive(participant("bob"), asking("m1"))
        assert of_type(events, RepairRequestReceived) == [
            RepairRequestReceived((), "erin")
        ]


class TestExpiry:
    @pytest.mark.rule("sds-r-edge-2", "sds-r-sweep-1", "sds-r-scenario-6")
    def test_unanswered_request_expires_and_is_repeated(self) -> None:
        """At T_req + T_max, as the deadline says."""
        bob = participant("bob", replace(SPEC, max_retries=0, sync_interval_ms=10**9))
        receive(bob, missing("m1"))
        assert requested(bob.send(b"text", LATER)) == ["m1"]
        bob.advance(LATER + SPEC.retry_unacknowledged_ms)
        end_ms = t_req_ms("bob", "m1") + T_MAX_MS
        assert bob.next_deadline_ms == end_ms
        assert bob.advance(end_ms).events == [RepairExpired("m1")]
        (queued,) = state(bob).requests
        assert queued == (
            HistoryEntry("m1", b"", "alice"),
            t_req_ms("bob", "m1", end_ms),
            None,
        )
        assert requested(bob.send(b"more", queued[1])) == ["m1"]

    def test_request_is_sent_only_once(self) -> None:
        """Not even if another history names the message."""
        bob = participant("bob", replace(SPEC, after_request=AfterRequest.ONCE))
        receive(bob, missing("m1"))
        assert requested(bob.send(b"text", LATER)) == ["m1"]
        late_ms = LATER + 3 * T_MAX_MS
        assert of_type(bob.advance(late_ms).events, RepairExpired) == []
        receive(bob, missing("m1", message_id="next"), now_ms=late_ms)
        assert requested(bob.send(b"more", late_ms + T_MAX_MS)) == []

    def test_forgotten_request_comes_again_with_the_next_history(self) -> None:
        """It gets a new T_req."""
        bob = participant("bob", replace(SPEC, after_request=AfterRequest.FORGET))
        receive(bob, missing("m1"))
        assert requested(bob.send(b"text", LATER)) == ["m1"]
        assert state(bob).requests == []
        receive(bob, missing("m1", message_id="next"), now_ms=LATER)
        again_ms = t_req_ms("bob", "m1", LATER)
        assert requested(bob.send(b"more", again_ms - 1)) == []
        assert requested(bob.send(b"last", again_ms)) == ["m1"]

    def test_forgotten_request_that_expires_is_not_repeated(self) -> None:
        """As in nim-sds."""
        profile = replace(SPEC, after_request=AfterRequest.FORGET)
        bob = participant("bob", profile)
        receive(bob, missing("m1"))
        expired = bob.sweep_incoming(t_req_ms("bob", "m1") + T_MAX_MS)
        assert expired.events == [RepairExpired("m1")]
        assert state(bob).requests == []

    def test_lost_message_is_not_requested_any_more(self) -> None:
        """If it arrives, it is still delivered."""
        bob = participant("bob", replace(SPEC, lost_after_ms=SECOND))
        receive(bob, missing("m1"))
        events = bob.advance(START_MS + SECOND).events
        assert IrretrievablyLost("m1", b"", "alice") in events
        assert state(bob).requests == []
        assert requested(bob.send(b"text", LATER)) == []
        assert bob.sweep_incoming(t_req_ms("bob", "m1") + T_MAX_MS) == Step((), [])
        receive(bob, missing("m1", message_id="next"), now_ms=LATER)
        assert state(bob).requests == []
        late = receive(bob, FRAMES.content("m1", "alice"), now_ms=LATER)
        assert Delivered("m1", "alice", 1_000, b"text") in late

    @pytest.mark.parametrize("limit", ["missing_limit", "incoming_limit"])
    def test_message_lost_by_a_full_buffer_is_not_requested(self, limit: str) -> None:
        """By a full list of missing messages or of waiting ones."""
        bob = participant("bob", replace(SPEC, **{limit: 1}))
        receive(bob, missing("m1", message_id="a"))
        events = receive(bob, missing("m2", message_id="b"))
        assert of_type(events, IrretrievablyLost) == [
            IrretrievablyLost("m1", b"", "alice")
        ]
        assert [one.message_id for one, *_ in state(bob).requests] == ["m2"]


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
    def test_answer_comes_with_the_next_sweep(
        self, profile: Profile, period_ms: int
    ) -> None:
        """Within one period, whatever other deadlines there are."""
        bob = participant("bob", replace(profile, sync_interval_ms=10**9))
        first = bob.send(b"text", START_MS, message_id="own").broadcasts[0].value
        asked_ms = START_MS + 2 * period_ms + 1
        receive(bob, asking("own", sender="bob"), now_ms=asked_ms)
        sweep_ms = START_MS + 3 * period_ms
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

    def test_answered_message_can_be_requested_again(self, bob: MessageChannel) -> None:
        """The first answer may have been lost."""
        bob.sweep_repairs(LATER)
        receive(bob, asking("m1"), now_ms=LATER)
        assert bob.sweep_repairs(LATER + T_MAX_MS).events == [RepairAnswered("m1")]

    def test_requests_and_answers_survive_a_restart(self, bob: MessageChannel) -> None:
        """They are in the snapshot with their times."""
        receive(bob, missing("gap"))
        restored = MessageChannel.restore(bob.snapshot(), random=Random(1))
        assert restored.next_deadline_ms == bob.next_deadline_ms
        due_ms = t_req_ms("bob", "gap")
        assert requested(restored.send(b"text", due_ms)) == ["gap"]
        assert restored.sweep_repairs(self.T_RESP_MS) == bob.sweep_repairs(
            self.T_RESP_MS
        )


class TestSync:
    @pytest.mark.rule("sds-r-sync-1", "sds-r-sync-2")
    def test_sync_message_carries_due_requests(self) -> None:
        """At most three, the most overdue first, as in any message."""
        bob = participant("bob")
        receive(bob, missing(*GAPS))
        assert requested(bob.sync(START_MS)) == []
        order = by_t_req("bob", GAPS)
        step = bob.sync(LATER)
        sync_id = frame_of(step).message_id
        assert requested(step) == order[:3]
        assert step.events == [
            SyncSent(sync_id),
            RepairRequested(tuple(order[:3]), sync_id),
        ]
        assert requested(bob.sync(LATER)) == order[3:]

    def test_empty_sync_message_is_not_sent(self) -> None:
        """Neither by a call nor when it is due."""
        bob = participant("bob")
        assert bob.sync(START_MS) == Step((), ())
        for _ in range(3):
            assert bob.advance(bob.next_deadline_ms) == Step([], [])

    def test_sync_message_without_history_is_sent_if_it_carries_requests(self) -> None:
        """The participant has delivered nothing yet."""
        bob = participant("bob")
        receive(bob, missing("m1"))
        assert bob.log == ()
        assert requested(bob.sync(LATER)) == ["m1"]

    @pytest.mark.rule("sds-r-sync-3")
    @pytest.mark.parametrize("text", [b"text", b""], ids=["content", "sync"])
    def test_traffic_does_not_put_off_a_sync_message_with_requests(
        self, text: bytes
    ) -> None:
        """Frames of others postpone only sync messages without requests."""
        planned = {}
        for history in ((), ("m1",)):
            bob = MessageChannel(
                CHANNEL, "bob", now_ms=START_MS, random=Draw(0.99), profile=SPEC
            )
            receive(bob, missing(*history))
            planned_ms = bob.next_deadline_ms
            for second in range(1, 25):
                now_ms = START_MS + second * SECOND
                frame = FRAMES.content(f"c{second}", "carol", text=text)
                receive(bob, frame, now_ms=now_ms)
            planned[history] = bob.next_deadline_ms - planned_ms
        assert planned[()] > 20 * SECOND
        assert planned[("m1",)] <= 0

    @pytest.mark.rule("sds-r-sync-3")
    def test_own_message_does_not_postpone_requests_that_do_not_fit(self) -> None:
        """They go with the sync message that was planned."""
        profile = replace(SPEC, requests_per_message=1)
        bob = MessageChannel(
            CHANNEL, "bob", now_ms=START_MS, random=Draw(0.99), profile=profile
        )
        receive(bob, missing(*GAPS[:3]))
        bob.sync(LATER)
        planned_ms = state(bob).next_sync_ms
        bob.send(b"text", planned_ms - 2)
        assert state(bob).next_sync_ms == planned_ms
        bob.send(b"more", planned_ms - 1)
        assert state(bob).next_sync_ms > planned_ms

    @pytest.mark.rule("sds-r-sync-3")
    def test_traffic_may_bring_a_sync_message_with_requests_forward(self) -> None:
        """After received content the next sync message is due early."""
        draw = Draw(0.9)
        bob = MessageChannel(CHANNEL, "bob", now_ms=START_MS, random=draw, profile=SPEC)
        receive(bob, missing("m1"))
        draw.drawn = 0.1
        receive(bob, FRAMES.content("c1", "carol"))
        assert bob.next_deadline_ms == START_MS + 4_951

    @pytest.mark.rule("sds-r-sweep-2")
    def test_sweep_sends_no_request_by_itself(self) -> None:
        """A due entry waits for the next message."""
        bob = participant("bob")
        receive(bob, missing("m1"))
        assert bob.sweep_incoming(LATER).broadcasts == ()
        assert bob.sweep_repairs(LATER).broadcasts == []
        assert requested(bob.sync(LATER)) == ["m1"]


class TestWithoutRepair:
    OFF = replace(SPEC, repair=False)

    @pytest.mark.rule("sds-r-concept-1")
    def test_no_repair_is_requested_or_answered(self) -> None:
        """Waiting messages are still delivered when they become free."""
        bob = participant("bob", self.OFF)
        receive(bob, FRAMES.content("m1", "alice"), missing("m2"))
        events = receive(bob, asking("m1"))
        assert of_type(events, RepairRequestReceived) == []
        assert requested(bob.send(b"text", LATER)) == []
        assert (state(bob).requests, state(bob).responses) == ([], {})
        receive(bob, FRAMES.content("m2", "alice", 5))
        assert bob.waiting == ()

    @pytest.mark.rule("sds-r-concept-1")
    def test_no_message_is_stored_for_answers(self) -> None:
        """Neither our own nor those of others."""
        kept = []
        for profile in (SPEC, self.OFF):
            bob = participant("bob", profile)
            bob.send(b"text", START_MS, message_id="own")
            receive(bob, FRAMES.content("m1", "alice"))
            kept.append(sorted(state(bob).retained))
        assert kept == [["m1", "own"], []]

    @pytest.mark.rule(
        "sds-r-unchanged-1",
        "sds-r-unchanged-2",
        "sds-r-unchanged-3",
        "sds-r-unchanged-4",
        "sds-r-receive-11",
    )
    def test_option_changes_nothing_but_repairs(self) -> None:
        """Timestamps, filters, waiting and missing messages, deliveries and logs."""
        frames = [
            FRAMES.content("m3", "alice", START_MS + 9, history=[("m2", "alice")]),
            FRAMES.content("m5", "carol", START_MS + 9, requests=[("m2", "alice")]),
            FRAMES.content("m4", "dave", START_MS + 9, requests=[("m3", "alice")]),
            FRAMES.sync("erin", START_MS + 40, requests=[("m5", "carol"), ("x", "y")]),
            FRAMES.content("m2", "alice", START_MS + 1, history=[("m1", "alice")]),
            FRAMES.content("m1", "alice", START_MS + 50),
        ]
        told = []
        for profile in (SPEC, self.OFF):
            bob = participant("bob", profile)
            steps: list[object] = []
            for number, frame in enumerate(frames):
                now_ms = START_MS + number * T_MAX_MS // 4
                events = receive(bob, frame, now_ms=now_ms)
                own = bob.send(b"text", now_ms, message_id=f"own {number}")
                sent = frame_of(own)._replace(repair_request=())
                steps += [
                    [one for one in events if not isinstance(one, _OF_REPAIR)],
                    sent,
                    bob.lamport,
                    bob.log,
                    bob.waiting,
                    bob.missing,
                    bob.unacknowledged,
                ]
            told.append(steps)
        assert told[0] == told[1]


_OF_REPAIR: tuple[type[Event], ...] = (
    RepairAnswered,
    RepairExpired,
    RepairRequested,
    RepairRequestReceived,
)


class TestCircularDependencies:
    @pytest.mark.rule("sds-r-edge-5")
    @pytest.mark.parametrize(
        "circle",
        [
            [("m1", ["m1"])],
            [("m1", ["m2"]), ("m2", ["m1"])],
            [("m1", ["m2"]), ("m2", ["m3"]), ("m3", ["m1"])],
        ],
        ids=["of one", "of two", "of three"],
    )
    @pytest.mark.parametrize(
        "end",
        [
            pytest.param(
                lambda bob: bob.advance(START_MS + SPEC.lost_after_ms), id="time"
            ),
            pytest.param(
                lambda bob: receive(
                    bob, missing("x", message_id="y"), missing("x", message_id="z")
                ),
                id="room",
            ),
        ],
    )
    def test_circle_of_dependencies_comes_to_an_end(
        self,
        circle: list[tuple[str, list[str]]],
        end: Callable[[MessageChannel], object],
    ) -> None:
        """Its messages are delivered after a timeout or by a full buffer."""
        bob = participant("bob", replace(SPEC, incoming_limit=len(circle)))
        for message_id, history in circle:
            receive(bob, missing(*history, message_id=message_id))
        assert state(bob).requests == []
        end(bob)
        assert [one for one in bob.log if one.startswith("m")] == [
            message_id for message_id, _ in circle
        ]
        assert not {message_id for message_id, _ in circle} & set(bob.waiting)

    @pytest.mark.rule("sds-r-edge-5")
    def test_long_chain_of_dependencies_is_resolved_at_once(self) -> None:
        """Longer than any stack of calls is deep."""
        bob = participant("bob", replace(SPEC, incoming_limit=3_000))
        for number in range(2_000, 0, -1):
            receive(
                bob,
                FRAMES.content(
                    f"m{number}", "alice", number, history=[f"m{number - 1}"]
                ),
            )
        assert bob.log == ()
        receive(bob, FRAMES.content("m0", "alice", 0))
        assert bob.log == tuple(f"m{number}" for number in range(2_001))
