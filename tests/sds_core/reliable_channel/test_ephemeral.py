"""Received ephemeral messages: delivered immediately, and each once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.reliable_channel import (
    Advance,
    Arrived,
    ChaChaEncryption,
    Dispatch,
    Encryption,
    MessageReceived,
    ReliableChannelCore,
    Send,
    SendEphemeral,
    StoreAnswered,
)
from sds_core.waku import WakuMessage
from tests.support.frames import SECOND, START_MS
from tests.support.reliable_channel import OPTIONS, SHARD, started

CIPHER = ChaChaEncryption(bytes(32), "tea", bytes)


def typing(
    payload: bytes = b"typing", now_ms: int = START_MS, **more: Encryption
) -> Dispatch:
    """Return what alice sends."""
    (dispatch,) = started(**more).apply(SendEphemeral(payload), now_ms).dispatches
    return dispatch


def received(payload: bytes = b"typing") -> list[MessageReceived]:
    """Return the event of it."""
    return [MessageReceived(payload, "alice", is_ephemeral=True)]


@pytest.mark.rule("rc-ephemeral-receive", "rc-ephemeral-received-event")
@pytest.mark.parametrize("encryption", [None, CIPHER], ids=["plain", "encrypted"])
def test_ephemeral_message_is_delivered_when_it_arrives(
    encryption: Encryption | None,
) -> None:
    """Also just after a processing, when other messages wait for the next."""
    bob = started("bob", encryption=encryption)
    alice = started(encryption=encryption)
    for now_ms in (START_MS, START_MS + 1, START_MS + 2):
        (content,) = alice.apply(Send(b"tea"), now_ms).dispatches
        bob.apply(Arrived(content.message, content.message_hash), now_ms)
        (dispatch,) = alice.apply(SendEphemeral(b"typing"), now_ms).dispatches
        output = bob.apply(Arrived(dispatch.message, dispatch.message_hash), now_ms)
        assert output.events == received()
    events = bob.apply(Advance(), START_MS + SECOND).events
    assert events == [MessageReceived(b"tea", "alice")] * 2


@pytest.mark.rule("rc-ephemeral-receive")
def test_ephemeral_message_needs_no_flag_of_the_network() -> None:
    """A peer may leave out the one that keeps it from stores."""
    message = typing().message
    bob = started("bob")
    plain = WakuMessage(message.payload, message.content_topic, message.timestamp_ns)
    assert bob.apply(Arrived(plain), START_MS).events == received()


@pytest.mark.rule("rc-ephemeral-received-event")
def test_repeated_copy_is_delivered_once() -> None:
    """With the node's hash and without it; by itself and in an answer of a store."""
    dispatch = typing()
    bob = started("bob", has_store=True)
    with_hash = Arrived(dispatch.message, dispatch.message_hash)
    assert bob.apply(with_hash, START_MS).events == received()
    for now_ms in (START_MS, START_MS + 1, START_MS + 60 * SECOND):
        for copy in (with_hash, Arrived(dispatch.message)):
            assert bob.apply(copy, now_ms).events == []
    queries = bob.apply(Advance(), START_MS + 61 * SECOND).queries
    for query in queries:
        answer = StoreAnswered(query.number, [with_hash])
        assert bob.apply(answer, START_MS + 61 * SECOND).events == []


@pytest.mark.rule("rc-ephemeral-received-event")
def test_equal_messages_that_were_sent_twice_are_delivered_twice() -> None:
    """`@waku/sds` gives both the same id; their times differ."""
    message = typing().message
    again = replace_time(message, START_MS + 5 * SECOND)
    bob = started("bob")
    for one in (message, again):
        assert bob.apply(Arrived(one), START_MS).events == received()


def replace_time(message: WakuMessage, now_ms: int) -> WakuMessage:
    """Return the message as if it were sent at another time."""
    return WakuMessage(
        message.payload, message.content_topic, now_ms * 10**6, ephemeral=True
    )


def test_repeated_copy_is_recognised_after_a_restart() -> None:
    """What is remembered is part of the state, and bounded."""
    bob = started("bob")
    messages = [replace_time(typing().message, one) for one in range(2_000)]
    for one in messages:
        assert bob.apply(Arrived(one), START_MS).events == received()
    restored = ReliableChannelCore.restore(
        bob.snapshot(), pubsub_topic=SHARD, options=OPTIONS
    )
    for one in messages[-500:]:
        assert restored.apply(Arrived(one), START_MS).events == []
    assert len(restored.snapshot()) < 200_000


def test_stopped_channel_delivers_no_ephemeral_message() -> None:
    """Nor one of another content topic, or its own."""
    own = typing()
    bob = started("alice", replace(OPTIONS, auto_start=False))
    assert bob.apply(Arrived(own.message), START_MS).events == []
    elsewhere = WakuMessage(own.message.payload, "/kettle/1/milk/proto", 1)
    assert started("bob").apply(Arrived(elsewhere), START_MS).events == []
