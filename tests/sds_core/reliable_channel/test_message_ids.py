"""An application knows the id of a message before it sends it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.reliable_channel import (
    ChunkInfo,
    ConnectionChanged,
    Dispatched,
    LimitReached,
    MessageAcknowledged,
    MessageIdRefused,
    MessageSent,
    ReliableChannelCore,
    Send,
    SendEphemeral,
    SendingMessage,
)
from tests.support.frames import MINUTE, START_MS
from tests.support.reliable_channel import (
    OPTIONS,
    SHARD,
    SMALL_SEGMENTS,
    network,
    started,
)

ONE = ChunkInfo((0,), 1)


@pytest.mark.rule("rc-send-id", "rc-type-message-id")
def test_id_is_known_before_the_message_is_sent() -> None:
    """All events have it, and so has the output."""
    net = network("alice", "bob")
    alice = net.channel("alice")
    message_id = alice.new_message_id(b"tea", START_MS, Random(1))
    assert net.apply("alice", Send(b"tea", message_id)).message_id == message_id
    net.run(MINUTE)
    assert [one.event for one in net.events if one.by == "alice"] == [
        SendingMessage(message_id, ONE),
        MessageSent(message_id, ONE),
        MessageAcknowledged(message_id, ONE),
    ]


@pytest.mark.rule("rc-type-message-id")
def test_new_ids_depend_on_the_payload_and_are_not_repeated() -> None:
    """They do not change the channel."""
    alice = started()
    before = alice.snapshot()
    random = Random(1)
    ids = {
        alice.new_message_id(payload, START_MS, random)
        for payload in (b"tea", b"tea", b"milk")
    }
    ids |= {
        alice.new_message_id(payload, START_MS, Random(2))
        for payload in (b"tea", b"milk")
    }
    assert len(ids) == 5
    restored = ReliableChannelCore.restore(before, pubsub_topic=SHARD, options=OPTIONS)
    assert restored.snapshot() == alice.snapshot()


@pytest.mark.rule("rc-send-ephemeral-id")
def test_ephemeral_message_has_the_given_id() -> None:
    """Its one event has it."""
    alice = started()
    output = alice.apply(SendEphemeral(b"typing", "mine"), START_MS)
    (dispatch,) = output.dispatches
    assert output.message_id == "mine"
    events = alice.apply(Dispatched(dispatch.number), START_MS).events
    assert events == [MessageSent("mine", ONE)]


@pytest.mark.parametrize("message_id", ["taken", "x" * 257, "\ud800"])
def test_id_that_a_message_cannot_have_is_refused(message_id: str) -> None:
    """The channel is as before."""
    alice = started()
    alice.apply(Send(b"tea", "taken"), START_MS)
    for kind in (Send, SendEphemeral):
        with pytest.raises(MessageIdRefused) as refused:
            alice.apply(kind(b"milk", message_id), START_MS)
        assert refused.value.message_id == message_id
    assert alice.apply(Send(b"milk"), START_MS).dispatches


def test_id_is_taken_while_chunks_of_a_forgotten_message_wait() -> None:
    """They would be sent as chunks of the later message."""
    limits = replace(OPTIONS.limits, messages=1)
    options = replace(OPTIONS, segmentation=SMALL_SEGMENTS, limits=limits)
    alice = started("alice", options)
    alice.apply(ConnectionChanged(False, False), START_MS)
    alice.apply(Send(bytes(3_000), "first"), START_MS)
    forgets = alice.apply(Send(b"tea", "second"), START_MS)
    assert LimitReached("messages", "first") in forgets.events
    with pytest.raises(MessageIdRefused, match="another message has this id"):
        alice.apply(Send(b"cake", "first"), START_MS)
    alice.apply(ConnectionChanged(True, False), START_MS)
    assert alice.apply(Send(b"cake", "first"), START_MS).message_id == "first"
