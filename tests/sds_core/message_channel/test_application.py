"""What an application reads from its participant: frames by id, places, room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Delivered,
    FrameTooLarge,
    Profile,
    RepairRequested,
    Sent,
)
from sds_core.wire import HistoryEntry
from tests.support.frames import START_MS, FrameFactory, value_of
from tests.support.participants import (
    CHANNEL,
    SPEC,
    hand_over,
    of_type,
    participant,
    receive,
)

FRAMES = FrameFactory(CHANNEL)
T_MAX_MS = SPEC.t_max_ms


class TestFrameById:
    def test_peer_gets_what_the_channel_holds(self) -> None:
        """Our message, a delivered one, and one that waits, each as it was."""
        alice = participant(profile=replace(SPEC, repair=False))
        (own,) = alice.send(b"ours", START_MS, message_id="own").broadcasts
        late = value_of(FRAMES.content("late", "bob", text=b"theirs", history=["x"]))
        alice.receive(late, START_MS)
        assert alice.frame_of("own", START_MS) == own.value
        assert alice.content_of("own", START_MS) == b"ours"
        assert alice.frame_of("late", START_MS) == late
        assert alice.content_of("late", START_MS) == b"theirs"

    def test_stored_message_is_found_as_long_as_for_repairs(self) -> None:
        """To the millisecond."""
        alice = participant(profile=replace(SPEC, repair_retention_ms=100))
        value = value_of(FRAMES.content("m", "bob"))
        alice.receive(value, START_MS)
        assert alice.frame_of("m", START_MS + 100) == value
        assert alice.frame_of("m", START_MS + 101) is None
        assert alice.content_of("m", START_MS + 101) is None

    def test_unknown_message_has_no_frame(self) -> None:
        """Nor has a missing one."""
        alice = participant()
        receive(alice, FRAMES.content("m", "bob", history=["x"]))
        assert alice.frame_of("x", START_MS) is None
        assert alice.content_of("y", START_MS) is None

    def test_frame_for_a_peer_delivers_its_message(self) -> None:
        """It goes into `receive`, like a broadcast."""
        alice, bob = participant(), participant("bob")
        receive(alice, FRAMES.content("m", "carol"))
        value = alice.frame_of("m", START_MS)
        assert value is not None
        (delivered,) = of_type(bob.receive(value, START_MS).events, Delivered)
        assert (delivered.message_id, delivered.sender_id) == ("m", "carol")


@pytest.mark.parametrize("profile", [SPEC, Profile.js_sds()])
def test_own_messages_have_their_place_in_the_log(profile: Profile) -> None:
    """By Lamport timestamp and id, like those of others."""
    alice, bob = participant("alice", profile), participant("bob", profile)
    places = []
    for number in range(6):
        one, other = (alice, bob) if number % 2 else (bob, alice)
        step = one.send(b"hi", START_MS + number)
        (sent,) = of_type(step.events, Sent)
        (delivered,) = of_type(
            hand_over(step, other, now_ms=START_MS + number), Delivered
        )
        assert sent.lamport == delivered.lamport
        places.append((sent.lamport, sent.message_id))
    in_order = tuple(message_id for _, message_id in sorted(places))
    assert alice.log == bob.log == in_order


class TestRoom:
    @pytest.mark.parametrize(
        "profile",
        [
            SPEC,
            Profile.js_sds(),
            Profile.nim_sds(),
            replace(SPEC, hint_limit=0, id_limit=64, causal_history_size=500),
            replace(SPEC, max_frame_bytes=80_000),
        ],
        ids=["spec", "js", "nim", "short", "small"],
    )
    def test_content_up_to_the_limit_always_fits(self, profile: Profile) -> None:
        """With ids, hints, history and requests of the greatest length."""
        longest = profile.id_limit
        channel_id = "\N{DROMEDARY CAMEL}" * longest
        frames = FrameFactory(channel_id, profile.dialect)
        alice = participant("\N{TEAPOT}" * longest, profile, channel_id=channel_id)

        def name(number: int) -> str:
            return f"{number:04}".ljust(longest, "\N{DROMEDARY CAMEL}")

        hint = b"x" * profile.hint_limit
        for number in range(60):
            asked = HistoryEntry(name(1_000 + number), hint, name(2_000))
            frame = frames.content(name(number), name(2_000))
            alice.receive(value_of(frame), START_MS, retrieval_hint=hint)
            sync = frames.sync("bob", START_MS // profile.lamport_unit_ms)
            receive(alice, sync._replace(causal_history=[asked]))
        step = alice.send(
            b"x" * profile.max_content_bytes,
            START_MS + profile.t_max_ms,
            message_id=name(3_000),
        )
        (requested,) = of_type(step.events, RepairRequested)
        assert len(requested.message_ids) == profile.requests_per_message
        assert len(step.broadcasts[0].value) <= profile.max_frame_bytes

    def test_limit_leaves_most_of_a_frame_to_the_content(self) -> None:
        """Less would make applications split what fits."""
        assert SPEC.max_content_bytes > SPEC.max_frame_bytes // 2

    def test_longer_content_may_fit(self) -> None:
        """If the history is short; the error says when it does not."""
        alice = participant()
        alice.send(b"x" * (SPEC.max_content_bytes + 10_000), START_MS)
        with pytest.raises(FrameTooLarge):
            alice.send(b"x" * SPEC.max_frame_bytes, START_MS)
