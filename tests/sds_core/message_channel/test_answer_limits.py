"""What one frame of a stranger can make a participant broadcast."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Broadcast,
    MessageChannel,
    Profile,
    RepairAnswered,
    RepairRequested,
    RepairRequestReceived,
    Step,
)
from tests.support.frames import START_MS, FrameFactory, value_of
from tests.support.message_channel.repair_steps import asking, missing, state, t_req_ms
from tests.support.participants import CHANNEL, SPEC, of_type, participant, receive

FRAMES = FrameFactory(CHANNEL)
SWEEP_MS = SPEC.repair_sweep_ms
QUIET = replace(SPEC, sync_interval_ms=10**9, max_retries=0)


def own(number: int) -> str:
    """An id of ours; for our own messages we answer at once."""
    return f"own{number:04}"


def holder(messages: int, profile: Profile = QUIET) -> MessageChannel:
    """A participant with so many messages of its own."""
    bob = participant("bob", profile)
    for number in range(messages):
        bob.send(b"text", START_MS, message_id=own(number))
    return bob


def ask_for_all(bob: MessageChannel, messages: int, now_ms: int = START_MS) -> None:
    """Ask with one frame for all that the participant holds."""
    ids = [own(number) for number in range(messages)]
    receive(bob, asking(*ids, sender="bob"), now_ms=now_ms)


def size_of(step: Step) -> int:
    """Bytes that a step broadcasts."""
    return sum(len(one.value) for one in step.broadcasts)


def answered(step: Step) -> list[str]:
    """Ids of the answers in a step."""
    return [one.message_id for one in of_type(step.events, RepairAnswered)]


class TestRequestsOfAFrame:
    def test_one_frame_does_not_empty_the_store(self) -> None:
        """A thousand messages of 18.8 kB would be 18.8 MB, at once and again in 5 s."""
        bob = holder(SPEC.repair_retained_limit)
        for sweep in range(2):
            now_ms = START_MS + sweep * SWEEP_MS
            ask_for_all(bob, SPEC.repair_retained_limit, now_ms)
            step = bob.advance(now_ms)
            assert 0 < len(step.broadcasts) <= SPEC.answers_per_sweep
            assert size_of(step) <= SPEC.answer_bytes_per_sweep + SPEC.max_frame_bytes

    @pytest.mark.parametrize("limit", [3, 4])
    def test_requests_beyond_the_limit_are_not_read(self, limit: int) -> None:
        """The first ones of a frame count."""
        bob = holder(6, replace(QUIET, requests_taken_per_message=limit))
        events = receive(bob, asking(*map(own, range(6)), sender="bob"))
        expected = tuple(map(own, range(limit)))
        assert of_type(events, RepairRequestReceived) == [
            RepairRequestReceived(expected, "erin")
        ]
        assert tuple(state(bob).responses) == expected

    def test_requests_beyond_the_limit_postpone_none_of_ours(self) -> None:
        """Otherwise a stranger's frame would silence us about everything."""
        profile = replace(QUIET, requests_taken_per_message=3)
        bob = participant("bob", profile)
        receive(bob, missing("gap"))
        receive(bob, asking("a", "b", "c", "gap"))
        step = bob.send(b"hi", t_req_ms("bob", "gap"))
        assert of_type(step.events, RepairRequested)

    def test_requests_of_the_guides_frames_are_all_read(self) -> None:
        """Also of a participant that puts as many into a frame as we do."""
        bob = holder(SPEC.requests_per_message)
        ask_for_all(bob, SPEC.requests_per_message)
        assert len(state(bob).responses) == SPEC.requests_per_message

    @pytest.mark.rule("sds-r-receive-9")
    @pytest.mark.parametrize("requests", [11, 40])
    def test_all_requests_are_read_as_the_guide_says(self, requests: int) -> None:
        """In the profile that is named after the documents; not by default."""
        bob = holder(requests)
        ask_for_all(bob, requests)
        assert len(state(bob).responses) == requests
        cautious = holder(requests, replace(Profile(), sync_interval_ms=10**9))
        ask_for_all(cautious, requests)
        assert len(state(cautious).responses) == 10


class TestAnswersInATime:
    @pytest.fixture
    def bob(self) -> MessageChannel:
        """Answers two messages a sweep, and is asked for five."""
        bob = holder(5, replace(QUIET, answers_per_sweep=2))
        ask_for_all(bob, 5)
        return bob

    def test_answers_beyond_the_limit_come_with_the_next_sweeps(
        self, bob: MessageChannel
    ) -> None:
        """All come, at the participant's own deadlines, most overdue first."""
        found = []
        for sweep in range(3):
            assert bob.next_deadline_ms == START_MS + sweep * SWEEP_MS
            found.append(answered(bob.advance(bob.next_deadline_ms)))
        assert found == [[own(0), own(1)], [own(2), own(3)], [own(4)]]
        assert bob.next_deadline_ms > START_MS + 3 * SWEEP_MS

    def test_limit_holds_however_often_the_application_sweeps(
        self, bob: MessageChannel
    ) -> None:
        """It counts for the whole period, from one start of a sweep to the next."""
        assert len(answered(bob.sweep_repairs(START_MS + 1))) == 2
        for now_ms in range(START_MS + 2, START_MS + SWEEP_MS, 7):
            assert bob.sweep_repairs(now_ms) == Step([], [])
        assert answered(bob.sweep_repairs(START_MS + SWEEP_MS)) == [own(2), own(3)]

    def test_limit_of_bytes_is_met_by_the_answer_that_exceeds_it(self) -> None:
        """So a message of any length is answered, and one more is not."""
        messages = [FRAMES.content(f"m{n}", "alice", text=b"x" * 600) for n in range(3)]
        size = len(value_of(messages[0]))
        for limit, expected in (
            (1, 1),
            (size, 1),
            (size + 1, 2),
            (2 * size, 2),
            (10**6, 3),
        ):
            bob = participant("bob", replace(QUIET, answer_bytes_per_sweep=limit))
            receive(bob, *messages, asking("m0", "m1", "m2"))
            later_ms = START_MS + SPEC.t_max_ms
            assert len(bob.sweep_repairs(later_ms).broadcasts) == expected

    def test_answer_that_another_gives_meanwhile_is_not_given(
        self, bob: MessageChannel
    ) -> None:
        """Waiting answers are cancelled like all others."""
        first = bob.advance(START_MS)
        assert answered(first) == [own(0), own(1)]
        for number in (2, 3):
            value = FRAMES.content(own(number), "bob")
            receive(bob, value)
        assert answered(bob.advance(START_MS + SWEEP_MS)) == [own(4)]

    def test_limit_survives_a_restart(self, bob: MessageChannel) -> None:
        """Restarting gives no further answers."""
        bob.advance(START_MS)
        again = MessageChannel.restore(
            bob.snapshot(), random=Random(1), profile=bob.profile
        )
        assert again.sweep_repairs(START_MS + 1) == Step([], [])
        assert again.next_deadline_ms == bob.next_deadline_ms
        assert again.advance(START_MS + SWEEP_MS) == bob.advance(START_MS + SWEEP_MS)

    def test_message_that_is_stored_no_longer_spends_nothing(self) -> None:
        """Only broadcasts count."""
        bob = holder(5, replace(QUIET, answers_per_sweep=2, repair_retained_limit=2))
        # Asked for before they were dropped.
        bob.send(b"text", START_MS, message_id="x")
        receive(bob, asking(own(4), "x", sender="bob"))
        bob.send(b"text", START_MS, message_id="y")
        receive(bob, asking("y", sender="bob"))
        assert answered(bob.advance(START_MS)) == ["x", "y"]

    @pytest.mark.parametrize("profile", [Profile.js_sds(), Profile.nim_sds()])
    def test_libraries_frames_never_meet_the_limits(self, profile: Profile) -> None:
        """Three requests a frame, as many frames as the buffer has room for."""
        frames = FrameFactory(CHANNEL, profile.dialect)
        bob = participant("bob", replace(profile, sync_interval_ms=10**9))
        count = 30
        sent: list[Broadcast] = []
        for number in range(count):
            sent += bob.send(b"text", START_MS, message_id=own(number)).broadcasts
        now = START_MS // profile.lamport_unit_ms
        for first in range(0, count, 3):
            ids = [(own(number), "bob") for number in range(first, first + 3)]
            receive(bob, frames.sync("erin", now, requests=ids))
        step = bob.sweep_repairs(START_MS)
        assert [one.value for one in step.broadcasts] == [one.value for one in sent]
