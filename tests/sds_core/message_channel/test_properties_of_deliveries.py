"""Properties of deliveries for any traffic, loss and delay: dependencies come first."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.message_channel import (
    Delivered,
    IrretrievablyLost,
    MessageChannel,
    MessageIdTaken,
    Profile,
    RepairRequestReceived,
    Sent,
    Step,
    SyncReceived,
)
from sds_core.wire import encode
from tests.support.frames import MINUTE, SECOND, START_MS, FrameFactory
from tests.support.message_channel.lossy_network import (
    NAMES_OF_ROOMY,
    NIM_SDS,
    ROOMY,
    SPEC,
    history_of,
    participant,
    play,
)
from tests.support.message_channel.traffic import Traffic, network_of, traffic
from tests.support.participants import of_type
from tests.support.properties import CAREFUL

pytestmark = pytest.mark.slow


@CAREFUL
@given(
    traffic(),
    st.sampled_from([None, 45 * SECOND, MINUTE, 2 * MINUTE]),
    st.integers(1, 3),
)
def test_no_message_is_delivered_before_its_dependencies(
    one: Traffic, lost_after_ms: int | None, causal_history_size: int
) -> None:
    """Each dependency is in the log or was reported lost."""
    there: dict[str, set[str]] = {name: set() for name in one.names}

    def check(name: str, _: int, step: Step) -> None:
        for event in step.events:
            match event:
                case Sent() | IrretrievablyLost():
                    there[name].add(event.message_id)
                case Delivered():
                    frame = network.messages[event.message_id]
                    assert set(history_of(frame)) <= there[name]
                    there[name].add(event.message_id)

    profile = replace(
        SPEC, lost_after_ms=lost_after_ms, causal_history_size=causal_history_size
    )
    network = network_of(one, profile, check)
    play(network, one.sent)
    network.run(5 * MINUTE)


def test_wait_that_ends_does_not_overtake_a_dependency_that_still_waits() -> None:
    """A dependency that came later has its own, later timeout."""
    profile = replace(SPEC, lost_after_ms=MINUTE, causal_history_size=1)
    alice = participant(profile, "alice", Random(0))
    bob = participant(profile, "bob", Random(1))
    first, second, third = (
        alice.send(b"text", START_MS).broadcasts[0] for _ in range(3)
    )
    bob.receive(third.value, START_MS)
    bob.receive(second.value, START_MS + MINUTE - 1)
    events = [
        *bob.advance(START_MS + MINUTE).events,
        *bob.receive(first.value, START_MS + MINUTE + 1).events,
    ]
    assert [one.message_id for one in of_type(events, Delivered)] == [
        first.message_id,
        second.message_id,
        third.message_id,
    ]


def test_message_does_not_wait_for_what_its_own_arrival_released() -> None:
    """It displaces a missing id for which only its dependency waited."""
    bob = participant(replace(NIM_SDS, missing_limit=1), "bob", Random(0))
    frames = FrameFactory(dialect=NIM_SDS.dialect)
    for frame in (
        frames.content("b", "alice", 2, history=["a"]),
        frames.content("d", "alice", 4, history=["b", "c"]),
        frames.content("c", "alice", 3, history=["b"]),
    ):
        bob.receive(encode(frame), START_MS)
    assert bob.log == ("b", "c", "d")
    assert bob.waiting == ()


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_dependency_too_old_for_the_log_is_not_awaited(
    profile: Profile,
) -> None:
    """It arrived, even if the log has no place for it."""
    bob = participant(replace(profile, log_limit=3), "bob", Random(0))
    frames = FrameFactory(dialect=profile.dialect)
    for lamport in (20, 30, 40):
        bob.receive(encode(frames.content(f"m{lamport}", "alice", lamport)), START_MS)
    late = frames.content("late", "alice", 50, history=["m10"])
    bob.receive(encode(late), START_MS)
    bob.receive(encode(frames.content("m10", "alice", 10)), START_MS)
    assert bob.missing == ()
    assert bob.waiting == ()
    assert "late" in bob.log


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_old_sync_message_is_read_with_a_full_log(
    profile: Profile,
) -> None:
    """It needs no place in the log, and may have requests."""
    bob = participant(replace(profile, log_limit=3), "bob", Random(0))
    frames = FrameFactory(dialect=profile.dialect)
    for lamport in (20, 30, 40):
        bob.receive(encode(frames.content(f"m{lamport}", "alice", lamport)), START_MS)
    behind = frames.sync("carol", 10, requests=[("m20", "alice")])
    events = bob.receive(encode(behind), START_MS).events
    assert of_type(events, SyncReceived)
    assert of_type(events, RepairRequestReceived)


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_restored_participant_receives_its_own_lost_message(
    profile: Profile,
) -> None:
    """A snapshot from before the send lacks it, but others build upon it."""
    alice = participant(profile, "alice", Random(0))
    before = alice.snapshot()
    forgotten = alice.send(b"text", START_MS).broadcasts[0]
    bob = participant(profile, "bob", Random(1))
    bob.receive(forgotten.value, START_MS)
    reply = bob.send(b"text", START_MS).broadcasts[0]
    alice = MessageChannel.restore(before, random=Random(0), profile=profile)
    alice.receive(reply.value, START_MS)
    alice.receive(forgotten.value, START_MS)
    assert alice.waiting == ()
    assert reply.message_id in alice.log


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_id_of_a_missing_message_cannot_be_sent(profile: Profile) -> None:
    """js-waku makes ids of content only, so equal messages share one."""
    bob = participant(profile, "bob", Random(0))
    frames = FrameFactory(dialect=profile.dialect)
    later = frames.content("later", "alice", 20, history=["id of the text"])
    bob.receive(encode(later), START_MS)
    before = bob.snapshot()
    with pytest.raises(MessageIdTaken):
        bob.send(b"text", START_MS, message_id="id of the text")
    assert bob.snapshot() == before
