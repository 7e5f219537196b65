"""An application has the id of a message before its first event, and sees gaps."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from connectors.reliable_channel import MemoryNode, create_reliable_channel
from sds_core.message_channel import MessageChannel
from sds_core.reliable_channel import MessageIdRefused
from sds_core.waku import WakuMessage
from tests.support.frames import START_MS
from tests.support.reliable_channel import CHANNEL, OPTIONS, TOPIC

PATIENCE_S = 20


@pytest.mark.rule("rc-send-id")
def test_id_is_known_before_the_first_event() -> None:
    """A refused id leaves the channel as it is."""

    async def run() -> None:
        channel = await create_reliable_channel(
            MemoryNode(), CHANNEL, "alice", TOPIC, OPTIONS
        )
        mine = channel.new_message_id(b"tea")
        heard: list[str] = []
        sent = asyncio.Event()
        channel.on("sending-message", lambda event: heard.append(event.message_id))
        channel.on("message-sent", lambda event: sent.set())
        assert channel.send(b"tea", message_id=mine) == mine
        with pytest.raises(MessageIdRefused):
            channel.send(b"tea", message_id=mine)
        assert channel.is_started()
        other = channel.send(b"tea")
        async with asyncio.timeout(PATIENCE_S):
            await sent.wait()
        assert heard == [mine, other]
        assert channel.send_ephemeral(b"typing", message_id="typing 1") == "typing 1"
        await channel.stop()

    asyncio.run(run())


def test_missing_messages_are_seen() -> None:
    """With id and sender, as another participant named them."""
    speaker = MessageChannel(CHANNEL, "bob", now_ms=START_MS, random=Random(1))
    speaker.send(b"lost", START_MS, message_id="lost")
    (broadcast,) = speaker.send(b"next", START_MS).broadcasts

    async def run() -> None:
        node = MemoryNode()
        channel = await create_reliable_channel(node, CHANNEL, "alice", TOPIC, OPTIONS)
        assert channel.missing == ()
        await node.send(WakuMessage(broadcast.value, TOPIC, START_MS))
        async with asyncio.timeout(PATIENCE_S):
            while not channel.missing:
                await asyncio.sleep(0.01)
        (entry,) = channel.missing
        assert (entry.message_id, entry.sender_id) == ("lost", "bob")
        await channel.stop()

    asyncio.run(run())


def test_coroutine_function_is_no_handler() -> None:
    """Nobody would await its coroutines, so each event would be lost."""

    async def handler(event: object) -> None:
        """Never called."""

    async def run() -> None:
        channel = await create_reliable_channel(
            MemoryNode(), CHANNEL, "alice", TOPIC, OPTIONS
        )
        with pytest.raises(TypeError, match="the handler of 'sent' is a coroutine"):
            channel.on("sent", handler)
        await channel.stop()

    asyncio.run(run())
