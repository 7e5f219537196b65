"""Which frames carry repair requests: messages and sync messages."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    FrameTooLarge,
    MessageChannel,
    Profile,
    RepairRequested,
    Step,
    SyncSent,
)
from sds_core.wire import Dialect, HistoryEntry
from tests.support.frames import SECOND, START_MS, FrameFactory
from tests.support.message_channel.repair_steps import (
    GAPS,
    LATER,
    by_t_req,
    missing,
    requested,
    state,
    t_req_ms,
)
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    of_type,
    participant,
    receive,
)

FRAMES = FrameFactory(CHANNEL)


class Draw(Random):
    """Draws one number in [0, 1) until it is changed."""

    def __init__(self, drawn: float) -> None:
        super().__init__(0)
        self.drawn = drawn

    def random(self) -> float:
        """The number."""
        return self.drawn


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
    def test_sync_messages_do_not_put_off_one_with_requests(self) -> None:
        """Those of others postpone only one without requests."""
        planned = {}
        for history in ((), ("m1",)):
            bob = MessageChannel(
                CHANNEL, "bob", now_ms=START_MS, random=Draw(0.99), profile=SPEC
            )
            receive(bob, missing(*history))
            planned_ms = bob.next_deadline_ms
            for second in range(1, 25):
                now_ms = START_MS + second * SECOND
                receive(bob, FRAMES.sync("carol"), now_ms=now_ms)
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
