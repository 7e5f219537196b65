"""Who counts as a participant of the channel."""

from __future__ import annotations

from dataclasses import replace

from sds_core.message_channel import Profile
from sds_core.message_channel.repairer import Participants

SPEC = Profile.spec()


def heard(participants: Participants) -> list[str]:
    """The names, those heard longest ago first."""
    return list(participants.state())


def test_participant_is_counted_once() -> None:
    """With the time of its last frame."""
    participants = Participants(SPEC)
    for name, at_ms in (("alice", 1), ("bob", 2), ("alice", 3)):
        participants.record_frame(name, at_ms)
    assert len(participants) == 2
    assert participants.state() == {"bob": 2, "alice": 3}


def test_silent_participant_is_forgotten() -> None:
    """When another sends, after more than its time."""
    participants = Participants(replace(SPEC, participant_forgotten_after_ms=100))
    for name in ("alice", "bob", "carol"):
        participants.record_frame(name, 5)
    participants.record_frame("bob", 50)
    participants.record_frame("dave", 105)
    assert heard(participants) == ["alice", "carol", "bob", "dave"]
    participants.record_frame("dave", 106)
    assert heard(participants) == ["bob", "dave"]


def test_sender_of_the_latest_frame_is_never_forgotten() -> None:
    """Even with a time of 0 and a limit of one."""
    profile = replace(SPEC, participant_forgotten_after_ms=0, participants_limit=1)
    participants = Participants(profile)
    for at_ms, name in enumerate(("alice", "bob", "bob")):
        participants.record_frame(name, at_ms)
        assert heard(participants) == [name]


def test_participant_silent_longest_is_forgotten_beyond_the_limit() -> None:
    """Not the one that was seen first."""
    participants = Participants(replace(SPEC, participants_limit=2))
    for at_ms, name in enumerate(("alice", "bob", "alice", "carol")):
        participants.record_frame(name, at_ms)
    assert heard(participants) == ["alice", "carol"]


def test_participants_survive_a_restart() -> None:
    """With order and times, whatever happens to the old object."""
    participants = Participants(replace(SPEC, participants_limit=2))
    for at_ms, name in enumerate(("alice", "bob", "alice")):
        participants.record_frame(name, at_ms)
    restored = Participants(replace(SPEC, participants_limit=2))
    restored.restore(participants.state())
    restored.record_frame("carol", 3)
    assert heard(restored) == ["alice", "carol"]
    assert heard(participants) == ["bob", "alice"]
