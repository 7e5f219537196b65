"""Messages that are taken back, because the network refused them for good."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Delivered,
    Ignored,
    IgnoredReason,
    LogOrder,
    MessageChannel,
    MessageIdTaken,
    Missing,
    Profile,
)
from tests.support.frames import MINUTE, START_MS, FrameFactory
from tests.support.message_channel.recorded import Recorded
from tests.support.message_channel.repair_steps import LATER, asking, state
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    hand_over,
    of_type,
    participant,
    receive,
    typed,
)

FRAMES = FrameFactory(CHANNEL)
BY_ARRIVAL = replace(SPEC, log_order=LogOrder.ARRIVAL)


def refused(profile: Profile = SPEC) -> MessageChannel:
    """A participant that sent a message, and took it back."""
    alice = participant(profile=profile)
    alice.send(b"hi", START_MS, message_id="sent")
    alice.send(b"hi", START_MS, message_id="refused")
    assert alice.withdraw("refused", START_MS)
    return alice


def named(channel: MessageChannel) -> list[str]:
    """Ids in the causal history of the next frame."""
    history = frame_of(channel.send(b"next", START_MS)).causal_history
    return [one.message_id for one in history]


@pytest.mark.parametrize("profile", [SPEC, BY_ARRIVAL], ids=["lamport", "arrival"])
def test_no_later_history_names_it(profile: Profile) -> None:
    """So a receiver waits for nothing that was never broadcast."""
    alice, bob = refused(profile), participant("bob", profile)
    assert alice.log == alice.unacknowledged == ("sent",)
    receive(bob, FRAMES.content("sent", "alice"))
    events = hand_over(alice.send(b"next", START_MS, message_id="next"), bob)
    assert [one.message_id for one in of_type(events, Delivered)] == ["next"]
    assert alice.log == ("sent", "next")


def test_it_is_neither_sent_again_nor_repaired() -> None:
    """Not even if a participant asked for it before."""
    alice = participant()
    alice.send(b"hi", START_MS, message_id="refused")
    receive(alice, asking("refused"))
    assert state(alice).responses
    assert alice.withdraw("refused", START_MS)
    receive(alice, asking("refused"))
    assert alice.frame_of("refused", START_MS) is None
    for now_ms in (LATER, LATER + 10 * MINUTE):
        broadcasts = alice.advance(now_ms).broadcasts
        assert "refused" not in [one.message_id for one in broadcasts]


def test_its_id_stays_known() -> None:
    """For copies, for histories that name it, and for new messages."""
    alice = refused()
    events = receive(
        alice,
        FRAMES.content("refused", "alice"),
        FRAMES.content("refused", "eve"),
    )
    assert typed(events) == typed(
        [
            Ignored(IgnoredReason.OWN_ECHO, "refused"),
            Ignored(IgnoredReason.DUPLICATE, "refused"),
        ]
    )
    events = receive(alice, FRAMES.content("m", "bob", history=["refused"]))
    assert of_type(events, Missing) == []
    assert len(of_type(events, Delivered)) == 1
    with pytest.raises(MessageIdTaken):
        alice.send(b"hi", START_MS, message_id="refused")


@pytest.mark.parametrize("message_id", ["acknowledged", "of bob", "unknown", "refused"])
def test_other_messages_stay(message_id: str) -> None:
    """The network has an acknowledged message; nothing is recorded."""
    alice = refused()
    alice.send(b"hi", START_MS, message_id="acknowledged")
    receive(alice, FRAMES.content("of bob", "bob", history=["acknowledged"]))
    alice.record_changes()
    before = alice.snapshot()
    assert not alice.withdraw(message_id, START_MS)
    assert alice.snapshot() == before
    assert alice.take_changes() == []


@pytest.mark.parametrize("profile", [SPEC, BY_ARRIVAL], ids=["lamport", "arrival"])
def test_it_is_withdrawn_after_a_restart_too(profile: Profile) -> None:
    """From a snapshot of before, of after, and with calls that follow."""
    one = Recorded(participant(profile=profile))
    one.channel.send(b"hi", START_MS, message_id="refused")
    receive(one.channel, asking("refused"))
    one.channel.withdraw("refused", START_MS + 1)
    one.assert_whole()
    later = Recorded(one.restored())
    later.channel.send(b"hi", START_MS + 2, message_id="next")
    later.assert_whole()
    one.channel.send(b"hi", START_MS + 2, message_id="next")
    one.assert_whole()
    for again in (one.restored(), later.restored()):
        assert named(again) == ["next"]


def test_it_is_withdrawn_although_the_log_has_dropped_it() -> None:
    """Its frame is no longer kept either."""
    alice = participant(profile=replace(SPEC, log_limit=1))
    alice.send(b"hi", START_MS, message_id="refused")
    alice.send(b"hi", START_MS, message_id="next")
    assert alice.withdraw("refused", START_MS)
    assert alice.log == alice.unacknowledged == ("next",)
    assert alice.frame_of("refused", START_MS) is None
