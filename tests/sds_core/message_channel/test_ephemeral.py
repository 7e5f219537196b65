"""Messages that ask for no reliability (SDS, "Ephemeral Messages")."""

from __future__ import annotations

import pytest

from sds_core.message_channel import (
    Broadcast,
    Cause,
    EphemeralReceived,
    FrameTooLarge,
    Sent,
)
from sds_core.wire import FrameKind
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    hand_over,
    participant,
    receive,
    typed,
)
from tests.support.wire.raw import field

FRAMES = FrameFactory(CHANNEL)


@pytest.mark.rule("sds-ephemeral-1", "sds-ephemeral-2", "sds-message-7")
def test_ephemeral_message_has_only_names_and_content() -> None:
    """Compared with protobuf written by hand."""
    step = participant().send_ephemeral(b"typing", START_MS)
    (broadcast,) = step.broadcasts
    message_id = broadcast.message_id
    assert broadcast == Broadcast(Cause.EPHEMERAL, message_id, broadcast.value)
    assert typed(step.events) == typed([Sent(message_id, None)])
    assert broadcast.value == (
        field(1, "alice")
        + field(2, message_id)
        + field(3, CHANNEL)
        + field(20, b"typing")
    )
    assert frame_of(step).kind is FrameKind.EPHEMERAL


@pytest.mark.rule("sds-ephemeral-3")
def test_ephemeral_message_leaves_no_trace_at_its_sender() -> None:
    """No buffer, no log, no timestamp."""
    alice = participant()
    before = alice.snapshot()
    alice.send_ephemeral(b"typing", START_MS)
    assert alice.snapshot() == before


@pytest.mark.rule("sds-ephemeral-4")
def test_ephemeral_message_is_delivered_at_once_and_not_stored() -> None:
    """So a second copy is delivered too."""
    bob = participant("bob")
    before = bob.snapshot()
    step = participant().send_ephemeral(b"typing", START_MS)
    received = EphemeralReceived(frame_of(step).message_id, "alice", b"typing")
    assert typed(hand_over(step, bob)) == typed([received])
    assert typed(hand_over(step, bob)) == typed([received])
    assert bob.snapshot() == before


def test_identical_ephemeral_messages_have_different_ids() -> None:
    """They have no timestamp that would distinguish them."""
    alice = participant()
    ids = {
        frame_of(alice.send_ephemeral(b"typing", START_MS)).message_id for _ in "abc"
    }
    assert len(ids) == 3
    assert {len(message_id) for message_id in ids} == {64}


def test_ephemeral_message_acknowledges_nothing() -> None:
    """Whatever fields it has."""
    alice = participant()
    alice.send(b"hi", START_MS, message_id="a")
    frame = FRAMES.content("e", "bob", history=["a", "x"], holds=["a"])
    events = receive(alice, frame._replace(lamport=None, kind=FrameKind.EPHEMERAL))
    assert typed(events) == typed([EphemeralReceived("e", "bob", b"text")])
    assert alice.unacknowledged == ("a",)
    assert alice.missing == ()


def test_ephemeral_frame_longer_than_allowed_is_refused() -> None:
    """As any other frame."""
    alice = participant()
    limit = SPEC.max_frame_bytes
    (sent,) = alice.send_ephemeral(bytes(limit - 100), START_MS).broadcasts
    most = limit - 100 + limit - len(sent.value)
    (sent,) = alice.send_ephemeral(bytes(most), START_MS).broadcasts
    assert len(sent.value) == limit
    with pytest.raises(FrameTooLarge):
        alice.send_ephemeral(bytes(most + 1), START_MS)
