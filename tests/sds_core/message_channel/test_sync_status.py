"""The status of synchronisation (js-waku's `sync_status.spec.ts` has these cases)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec

from sds_core.message_channel import MessageChannel, SyncStatus
from sds_core.message_channel.snapshot import SEAL, State
from tests.support.frames import SECOND, START_MS, FrameFactory
from tests.support.participants import CHANNEL, SPEC, participant, receive

FRAMES = FrameFactory(CHANNEL)
PROFILE = replace(SPEC, lost_after_ms=SECOND)


def test_participant_that_missed_nothing_is_synced() -> None:
    """Before its first message too; own messages and sync messages do not count."""
    bob = participant("bob", PROFILE)
    assert bob.sync_status == SyncStatus(received=0, missing=0, lost=0)
    bob.send(b"hi", START_MS)
    receive(bob, FRAMES.content("m", "alice"), FRAMES.sync("alice", history=["m"]))
    assert bob.sync_status == (1, 0, 0)
    assert bob.sync_status.is_synced


def test_missing_messages_are_waited_for() -> None:
    """Each once, and the one that waits for them is received."""
    bob = participant("bob", PROFILE)
    receive(bob, FRAMES.content("m", "alice", history=["x", "y"]))
    receive(bob, FRAMES.sync("alice", history=["x"]))
    assert bob.sync_status == (1, 2, 0)
    assert not bob.sync_status.is_synced
    receive(bob, FRAMES.content("x", "alice"))
    assert bob.sync_status == (2, 1, 0)
    receive(bob, FRAMES.content("y", "alice"))
    assert bob.sync_status == (3, 0, 0)
    assert bob.sync_status.is_synced


def test_copies_are_not_counted() -> None:
    """Whether the message waits or was delivered."""
    bob = participant("bob", PROFILE)
    frames = FRAMES.content("m", "alice"), FRAMES.content("n", "alice", history=["x"])
    receive(bob, *frames * 3)
    assert bob.sync_status == (2, 1, 0)


def test_lost_messages_count_as_synced() -> None:
    """Nothing more can be done; one that arrives after all is received."""
    bob = participant("bob", PROFILE)
    receive(bob, FRAMES.content("m", "alice", history=["x", "y"]))
    bob.advance(START_MS + SECOND)
    assert bob.sync_status == (1, 0, 2)
    assert bob.sync_status.is_synced
    receive(bob, FRAMES.content("x", "alice"), now_ms=START_MS + SECOND)
    assert bob.sync_status == (2, 0, 1)


def test_status_survives_a_restart() -> None:
    """From a snapshot, and from the changes since."""
    bob = participant("bob", PROFILE)
    before = bob.snapshot()
    bob.record_changes()
    receive(bob, FRAMES.content("m", "alice", history=["x"]))
    bob.advance(START_MS + SECOND)
    receive(bob, FRAMES.content("n", "alice", history=["m", "y"]))
    assert bob.sync_status == (2, 1, 1)
    changes = bob.take_changes()
    for blob, later in ((bob.snapshot(), ()), (before, changes)):
        again = MessageChannel.restore(
            blob, changes=later, random=Random(1), profile=PROFILE
        )
        assert again.sync_status == bob.sync_status


def test_older_snapshots_count_what_they_know() -> None:
    """They have no such number: log and incoming buffer stand for it."""
    bob = participant("bob", PROFILE)
    bob.send(b"hi", START_MS)
    receive(
        bob, FRAMES.content("m", "alice"), FRAMES.content("n", "eve", history=["x"])
    )
    state: State = msgspec.structs.replace(SEAL.unpack(bob.snapshot()), received=None)
    again = MessageChannel.restore(SEAL.pack(state), random=Random(1), profile=PROFILE)
    assert again.sync_status == bob.sync_status == (2, 1, 0)
