"""Channels without repair, and dependencies in circles and long chains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Event,
    MessageChannel,
    RepairAnswered,
    RepairExpired,
    RepairRequested,
    RepairRequestReceived,
)
from tests.support.frames import START_MS, FrameFactory
from tests.support.message_channel.repair_steps import (
    LATER,
    T_MAX_MS,
    asking,
    missing,
    requested,
    state,
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
    def test_option_and_requests_change_nothing_but_repairs(self) -> None:
        """Timestamps, filters, waiting and missing messages, deliveries and logs."""
        frames = [
            FRAMES.content("m3", "alice", START_MS + 9, history=[("m2", "alice")]),
            FRAMES.content(
                "m5",
                "carol",
                START_MS + 9,
                history=[("m0", "alice")],
                requests=[("m2", "alice")],
            ),
            FRAMES.content("m4", "dave", START_MS + 9, requests=[("m3", "alice")]),
            FRAMES.sync("erin", START_MS + 40, requests=[("m5", "carol"), ("x", "y")]),
            FRAMES.content("m2", "alice", START_MS + 1, history=[("m1", "alice")]),
            FRAMES.content("m1", "alice", START_MS + 50),
            FRAMES.content("m0", "alice", START_MS + 5),
        ]
        without = [frame._replace(repair_request=()) for frame in frames]
        told = []
        for profile, received in ((SPEC, frames), (self.OFF, frames), (SPEC, without)):
            bob = participant("bob", profile)
            steps: list[object] = []
            for number, frame in enumerate(received):
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
        assert told[0] == told[1] == told[2]


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
