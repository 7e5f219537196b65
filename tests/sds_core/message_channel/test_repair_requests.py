"""Which missing messages a participant queues for a request, and until when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.message_channel import (
    AfterRequest,
    Buffer,
    Delivered,
    Evicted,
    IrretrievablyLost,
    Missing,
    Profile,
    RepairExpired,
    RepairRequestReceived,
    Step,
)
from sds_core.wire import HistoryEntry
from tests.support.frames import SECOND, START_MS, FrameFactory
from tests.support.message_channel.repair_steps import (
    GAPS,
    LATER,
    T_MAX_MS,
    asking,
    by_t_req,
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

    @pytest.mark.rule("sds-r-state-3")
    def test_request_is_carried_by_one_frame(self) -> None:
        """Then it does not wait for a frame any more."""
        bob = participant("bob")
        receive(bob, missing("m1", "m2"))
        assert sorted(requested(bob.send(b"text", LATER))) == ["m1", "m2"]
        assert requested(bob.send(b"text", LATER + 1)) == []

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
        bob = participant("bob", LASTING)
        receive(bob, FRAMES.content("first", "carol", history=["m1"]))
        now_ms = START_MS + 2 * T_MAX_MS
        receive(bob, missing("m1"), now_ms=now_ms)
        (queued,) = state(bob).requests
        assert queued[1] == t_req_ms("bob", "m1", now_ms - T_MAX_MS)
        assert of_type(bob.sweep_incoming(now_ms).events, RepairExpired) == []
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
        bob = participant("bob", replace(LASTING, repair_buffer_limit=1))
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

    @pytest.mark.rule("sds-r-receive-6")
    def test_request_leaves_the_buffer_until_a_history_names_the_message(self) -> None:
        """As the guide says; the next one that names it counts from its own time."""
        bob = participant("bob")
        receive(bob, missing("m1", "m2"))
        receive(bob, asking("m1"), now_ms=START_MS + SECOND)
        assert [one.message_id for one, *_ in state(bob).requests] == ["m2"]
        bob.advance(START_MS + SECOND + T_MAX_MS)
        assert "m1" not in [one.message_id for one, *_ in state(bob).requests]
        receive(bob, missing("m1", message_id="next"), now_ms=LATER)
        again_ms = t_req_ms("bob", "m1", LATER)
        assert "m1" not in requested(bob.send(b"text", again_ms - 1))
        assert "m1" in requested(bob.send(b"more", again_ms))

    @pytest.mark.rule("sds-r-receive-6", "sds-r-edge-2")
    def test_request_is_queued_anew_if_that_of_another_finds_no_answer(self) -> None:
        """T_max later, with a new wait of its own."""
        bob = participant("bob", LASTING)
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
        bob = participant(
            "bob", replace(LASTING, max_retries=0, sync_interval_ms=10**9)
        )
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

    def test_message_lost_by_a_full_buffer_is_not_requested(self) -> None:
        """By a full list of missing messages."""
        bob = participant("bob", replace(SPEC, missing_limit=1))
        receive(bob, missing("m1", message_id="a"))
        events = receive(bob, missing("m2", message_id="b"))
        assert of_type(events, IrretrievablyLost) == [
            IrretrievablyLost("m1", b"", "alice")
        ]
        assert [one.message_id for one, *_ in state(bob).requests] == ["m2"]

    def test_message_that_a_full_incoming_buffer_awaits_no_longer_is_requested(
        self,
    ) -> None:
        """Only the order of delivery suffers from this limit."""
        bob = participant("bob", replace(SPEC, incoming_limit=1))
        receive(bob, missing("m1", message_id="a"))
        events = receive(bob, missing("m2", message_id="b"))
        assert of_type(events, IrretrievablyLost) == []
        assert [one.message_id for one, *_ in state(bob).requests] == ["m1", "m2"]
