"""Events come again after a kill if the application may not have received them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec
import pytest

from connectors.event_loop.driver import unix_ms
from connectors.reliable_channel import MemoryNode, create_reliable_channel
from sds_core.reliable_channel import IrretrievableMessage, MessageReceived, Send
from sds_core.reliable_channel.journal import Stored
from tests.support.frames import START_MS
from tests.support.reliable_channel import (
    CHANNEL,
    OPTIONS,
    SMALL_SEGMENTS,
    TOPIC,
    started,
)

SLOW = replace(OPTIONS, process_task_min_elapse_ms=2_000)
STOPPED = replace(SLOW, auto_start=False)
PATIENCE_S = 20

STORED = msgspec.msgpack.encode(STOPPED)
"""What an entry of the journal has of these options."""


@dataclass
class Disk:
    """Stores a channel in memory."""

    state: bytes | None = None
    entries: Sequence[bytes] = ()

    def load(self) -> Stored | None:
        """Return what is stored."""
        return None if self.state is None else Stored(self.state, self.entries)

    def append(self, entry: bytes) -> None:
        """Add an entry."""
        self.entries = (*self.entries, entry)

    def replace(self, state: bytes) -> None:
        """Store a state."""
        self.state, self.entries = state, ()

    def copy(self) -> Disk:
        """Return what a kill leaves now."""
        return replace(self)


async def until(payloads: Iterable[bytes], received: list[bytes]) -> None:
    """Wait until all these payloads are received."""
    async with asyncio.timeout(PATIENCE_S):
        while not set(payloads) <= set(received):
            await asyncio.sleep(0.01)


async def killed_between_two_events(node: MemoryNode, *, replies: bool) -> Disk:
    """Receive two messages at once; return what is stored when the first one comes.

    If `replies`, the handler of a message sends one.
    """
    disk, left = Disk(), list[Disk]()
    alice = await create_reliable_channel(node, CHANNEL, "alice", TOPIC, SLOW)
    bob = await create_reliable_channel(
        node, CHANNEL, "bob", TOPIC, STOPPED, storage=disk
    )
    received: list[bytes] = []

    def take(event: MessageReceived) -> None:
        received.append(event.payload)
        if replies and event.payload != b"zero":
            bob.send(b"thanks")
        left.append(disk.copy())

    bob.on("message-received", take)
    await bob.start()
    # Messages that come within two seconds after this one wait, and come together.
    alice.send(b"zero")
    await until([b"zero"], received)
    alice.send(b"one")
    alice.send(b"two")
    await until([b"one", b"two"], received)
    await alice.stop()
    await bob.stop()
    assert received == [b"zero", b"one", b"two"]
    _, first, second = left
    assert len(second.entries) - len(first.entries) == replies
    return first


@pytest.mark.parametrize("replies", [False, True])
@pytest.mark.parametrize("before", ["", "opened", "opened and stopped"])
def test_message_behind_the_one_that_was_being_received_is_not_lost(
    replies: bool, before: str
) -> None:
    """Nor if the channel was opened once more, and ended before it was started."""

    async def run() -> None:
        node = MemoryNode()
        disk = await killed_between_two_events(node, replies=replies)
        if before:
            opened = await create_reliable_channel(
                MemoryNode(), CHANNEL, "bob", TOPIC, STOPPED, storage=disk
            )
            if before == "opened and stopped":
                await opened.stop()
        bob = await create_reliable_channel(
            node, CHANNEL, "bob", TOPIC, STOPPED, storage=disk.copy()
        )
        received: list[bytes] = []
        bob.on("message-received", lambda event: received.append(event.payload))
        await bob.start()
        await until([b"two"], received)
        await bob.stop()

    asyncio.run(run())


def test_incomplete_message_that_other_options_drop_is_reported() -> None:
    """At the start, when the application has its handlers."""
    options = replace(STOPPED, segmentation=SMALL_SEGMENTS)

    async def run() -> None:
        disk, node = Disk(), MemoryNode()
        bob = await create_reliable_channel(
            node, CHANNEL, "bob", TOPIC, options, storage=disk
        )
        await bob.start()
        (chunk, *_) = (
            started("alice", options).apply(Send(bytes(900)), START_MS).dispatches
        )
        bob.arrived(chunk.message, chunk.message_hash)
        await bob.stop()
        again = await create_reliable_channel(
            MemoryNode(),
            CHANNEL,
            "bob",
            TOPIC,
            replace(options, segmentation=None),
            storage=disk,
        )
        lost: list[IrretrievableMessage] = []
        again.on("irretrievable-message", lost.append)
        await again.start()
        assert [one.entry.sender_id for one in lost] == ["alice"]
        await again.stop()

    asyncio.run(run())


def test_reply_to_a_message_that_comes_again_is_sent() -> None:
    """The channel is started when the handler calls it, as at any other message."""

    async def run() -> None:
        node = MemoryNode()
        disk = await killed_between_two_events(node, replies=False)
        alice = await create_reliable_channel(node, CHANNEL, "eve", TOPIC, OPTIONS)
        replies: list[bytes] = []
        alice.on("message-received", lambda event: replies.append(event.payload))
        bob = await create_reliable_channel(
            node, CHANNEL, "bob", TOPIC, STOPPED, storage=disk
        )
        left: list[Disk] = []

        def reply(event: MessageReceived) -> None:
            bob.send(b"re: " + event.payload)
            left.append(disk.copy())

        bob.on("message-received", reply)
        await bob.start()
        await until([b"re: one", b"re: two"], replies)
        await bob.stop()
        await alice.stop()
        # Another restart may have other options, but replays the reply with these.
        assert any(b"Restarted" in one and STORED in one for one in left[0].entries)
        # A kill between the two replies loses neither the reply nor the message after
        # it, even if the options change once more.
        again = await create_reliable_channel(
            MemoryNode(),
            CHANNEL,
            "bob",
            TOPIC,
            replace(STOPPED, segmentation=None),
            storage=left[0],
        )
        received: list[bytes] = []
        again.on("message-received", lambda event: received.append(event.payload))
        await again.start()
        assert received == [b"one", b"two"]
        await again.stop()

    asyncio.run(run())


def test_reply_that_cannot_be_stored_ends_the_start() -> None:
    """The channel has stopped, so it must not subscribe."""

    def full(entry: bytes) -> None:
        raise OSError

    async def run() -> None:
        node = MemoryNode()
        disk = await killed_between_two_events(node, replies=False)
        bob = await create_reliable_channel(
            node, CHANNEL, "bob", TOPIC, STOPPED, storage=disk
        )

        def reply(event: MessageReceived) -> None:
            disk.append = full  # type: ignore[method-assign]
            bob.send(event.payload)

        bob.on("message-received", reply)
        with pytest.raises(RuntimeError, match="stopped after an error"):
            await bob.start()
        assert not bob.is_started()

    asyncio.run(run())


@pytest.mark.parametrize("clock_ms", [None, unix_ms])
def test_channel_whose_clock_was_ahead_goes_on_after_a_restart(
    clock_ms: Callable[[], int] | None,
) -> None:
    """It does not wait until the clock reaches the stored time again."""

    async def live() -> None:
        node, disk, received = MemoryNode(), Disk(), list[bytes]()
        alice = await create_reliable_channel(node, CHANNEL, "alice", TOPIC, OPTIONS)
        for texts, clock in (
            ([b"tea"], lambda: unix_ms() + 3_600_000),
            ([b"milk", b"sugar"], clock_ms),
        ):
            bob = await create_reliable_channel(
                node, CHANNEL, "bob", TOPIC, OPTIONS, storage=disk, now_ms=clock
            )
            bob.on("message-received", lambda event: received.append(event.payload))
            for text in texts:
                alice.send(text)
                await until([text], received)
            await bob.stop()
        await alice.stop()

    asyncio.run(live())
