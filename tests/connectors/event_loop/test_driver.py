"""A participant in asyncio: its clock, its timer, and the order of its results."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from random import Random

import pytest

from connectors.event_loop.driver import ChannelDriver, NotStored, unix_ms
from sds_core.message_channel import (
    Acknowledged,
    Broadcast,
    Cause,
    Delivered,
    EmptyContent,
    EphemeralReceived,
    Event,
    MessageChannel,
    Profile,
    Sent,
    SyncSent,
)
from sds_core.message_channel.changes import SEAL, Call
from tests.support.frames import FrameFactory, value_of
from tests.support.message_channel.repair_bus import SPEC
from tests.support.participants import CHANNEL, of_type

QUICK = replace(
    SPEC,
    retry_unacknowledged_ms=60,
    retry_possibly_acknowledged_ms=60,
    max_retries=10,
    sync_interval_ms=50,
    t_min_ms=5,
    t_max_ms=20,
    repair_sweep_ms=5,
)
"""Everything happens within a tenth of a second."""

SLOW = replace(QUICK, retry_unacknowledged_ms=10**7, sync_interval_ms=10**7)

PATIENCE_S = 20


class Network:
    """Drivers in one event loop that receive each other's frames.

    Attributes:
        drivers: by name.
        events: of each, in order.
        sent: all frames with their sender, in order.
        is_lost: tells whether a frame reaches nobody.
    """

    def __init__(self, profile: Profile = QUICK) -> None:
        self._profile = profile
        self.drivers: dict[str, ChannelDriver] = {}
        self.channels: dict[str, MessageChannel] = {}
        self.events: dict[str, list[Event]] = {}
        self.sent: list[tuple[str, Broadcast]] = []
        self.is_lost: Callable[[Broadcast], bool] = lambda _: False
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, name: str) -> ChannelDriver:
        """Add a participant."""
        events = self.events[name] = []
        channel = self.channels[name] = MessageChannel(
            CHANNEL, name, now_ms=unix_ms(), random=Random(name), profile=self._profile
        )

        async def broadcast(one: Broadcast) -> None:
            self.sent.append((name, one))
            await asyncio.sleep(0)
            if self.is_lost(one):
                return
            for other, driver in self.drivers.items():
                if other != name:
                    task = asyncio.create_task(driver.receive(one.value))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

        self.drivers[name] = ChannelDriver(
            channel, broadcast=broadcast, on_event=events.append
        )
        return self.drivers[name]


async def until(condition: Callable[[], object]) -> None:
    """Wait until something has happened."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


def test_lost_message_is_repaired_and_acknowledged() -> None:
    """Retries, syncs, requests and answers come at their deadlines, by themselves."""

    async def talk() -> None:
        network = Network()
        async with AsyncExitStack() as stack:
            alice, bob, _ = [
                await stack.enter_async_context(network.add(name))
                for name in ("alice", "bob", "carol")
            ]
            network.is_lost = lambda one: one.cause is Cause.CONTENT
            lost = await alice.send(b"first")
            network.is_lost = lambda _: False
            await bob.send(b"second")
            await until(
                lambda: all(
                    lost in channel.log and len(channel.log) == 2
                    for channel in network.channels.values()
                )
            )
            await until(lambda: of_type(network.events["alice"], Acknowledged))
            await until(lambda: of_type(network.events["carol"], SyncSent))

    asyncio.run(talk())


def test_deadline_that_moves_closer_is_met() -> None:
    """The timer waits for a far one when a call makes an earlier one."""

    async def wait() -> None:
        network = Network(replace(SLOW, retry_unacknowledged_ms=50))
        async with network.add("alice") as alice:
            await asyncio.sleep(0.02)
            await alice.send(b"hi")
            await until(lambda: len(network.sent) > 1)
            assert network.sent[1][1].cause is Cause.RETRY

    asyncio.run(wait())


def test_change_is_stored_before_it_is_told() -> None:
    """A frame that is out must not be forgotten by a sudden end."""
    order: list[str] = []

    async def broadcast(_: Broadcast) -> None:
        order.append("broadcast")

    async def send() -> None:
        channel = MessageChannel(
            CHANNEL, "alice", now_ms=unix_ms(), random=Random(1), profile=SLOW
        )
        driver = ChannelDriver(
            channel,
            broadcast=broadcast,
            on_event=lambda _: order.append("event"),
            store=lambda one: order.append(f"store {len(one.log)}"),
        )
        async with driver:
            message_id = await driver.send(b"hi")
            driver.note_retrieval_hint(message_id, b"hint")

    asyncio.run(send())
    assert order == ["store 1", "event", "broadcast", "store 1"]


def test_driver_ends_when_a_change_cannot_be_stored() -> None:
    """Others must not count on what a restart does not know."""
    sent: list[Broadcast] = []
    events: list[Event] = []

    async def broadcast(one: Broadcast) -> None:
        sent.append(one)

    def store(_: MessageChannel) -> None:
        if events:
            raise OSError(errno.ENOSPC, "the disk is full")

    async def run() -> None:
        channel = MessageChannel(
            CHANNEL, "alice", now_ms=unix_ms(), random=Random(1), profile=QUICK
        )
        driver = ChannelDriver(
            channel, broadcast=broadcast, on_event=events.append, store=store
        )
        frames = FrameFactory(CHANNEL)
        async with driver:
            await driver.receive(value_of(frames.content("m", "bob")))
            before = len(sent), len(events)
            with pytest.raises(OSError, match="the disk is full"):
                await driver.receive(value_of(frames.content("n", "bob")))
            for call in (
                driver.send(b"hi"),
                driver.receive(value_of(frames.content("o", "bob"))),
                driver.wait_closed(),
            ):
                with pytest.raises(NotStored):
                    await call
            assert (len(sent), len(events)) == before

    with pytest.raises(NotStored):
        asyncio.run(run())


def test_what_waits_for_messages_from_elsewhere_is_delivered() -> None:
    """And the change is stored."""
    order: list[str] = []

    async def nowhere(_: Broadcast) -> None:
        raise AssertionError

    async def run() -> None:
        channel = MessageChannel(
            CHANNEL, "alice", now_ms=unix_ms(), random=Random(1), profile=SLOW
        )
        waiting = FrameFactory(CHANNEL).content("m", "bob", history=["x"])
        driver = ChannelDriver(
            channel,
            broadcast=nowhere,
            on_event=lambda one: order.append(type(one).__name__),
            store=lambda one: order.append(f"store {len(one.log)}"),
        )
        await driver.receive(value_of(waiting))
        await driver.mark_dependencies_met(["x"])

    asyncio.run(run())
    assert order == ["store 0", "Received", "Missing", "store 1", "Delivered"]


def test_frames_of_two_sendings_go_out_in_order() -> None:
    """Also if the first one waits for its transport."""
    sent: list[bytes] = []
    first_waits = True

    async def broadcast(one: Broadcast) -> None:
        nonlocal first_waits
        if first_waits:
            first_waits = False
            await asyncio.sleep(0.02)
        sent.append(one.value)

    async def send() -> None:
        channel = MessageChannel(
            CHANNEL, "alice", now_ms=unix_ms(), random=Random(1), profile=SLOW
        )
        async with ChannelDriver(channel, broadcast=broadcast) as driver:
            await asyncio.gather(*(driver.send(b"%d" % number) for number in range(3)))
            own = [channel.frame_of(one, unix_ms()) for one in channel.log]
            assert sent == own

    asyncio.run(send())


def test_ephemeral_message_arrives() -> None:
    """It needs no timer."""

    async def send() -> None:
        network = Network(SLOW)
        async with network.add("alice") as alice, network.add("bob"):
            message_id = await alice.send_ephemeral(b"hi")
            await until(lambda: network.events["bob"])
            assert network.events["bob"] == [
                EphemeralReceived(message_id, "alice", b"hi")
            ]

    asyncio.run(send())


def test_clock_that_is_set_back_stands_still() -> None:
    """The participant's times never decrease."""
    times = iter([5_000, 1_000, 6_000])
    frames = FrameFactory(CHANNEL)
    channel = MessageChannel(CHANNEL, "alice", now_ms=0, random=Random(1), profile=SLOW)
    channel.record_changes()

    async def ignore(_: Broadcast) -> None:
        """No frame matters here."""

    async def receive() -> None:
        driver = ChannelDriver(channel, broadcast=ignore, clock_ms=lambda: next(times))
        await driver.send(b"hi")
        await driver.send(b"hi")
        await driver.receive(value_of(frames.content("m", "bob")))

    asyncio.run(receive())
    calls = [SEAL.unpack(one).now_ms for one in channel.take_changes()]
    assert calls == [5_000, 5_000, 6_000]


def test_time_off_ends_at_the_start() -> None:
    """And not at the first deadline, which may be long after it."""
    now_ms = unix_ms()
    before = MessageChannel(
        CHANNEL, "alice", now_ms=now_ms, random=Random(1), profile=SLOW
    )
    late = value_of(FrameFactory(CHANNEL).content("late", "bob", history=["x"]))
    before.receive(late, now_ms)
    channel = MessageChannel.restore(before.snapshot(), random=Random(1), profile=SLOW)
    channel.record_changes()
    changes: list[bytes] = []

    async def ignore(_: Broadcast) -> None:
        pass

    async def run() -> None:
        async with ChannelDriver(
            channel,
            broadcast=ignore,
            store=lambda one: changes.extend(one.take_changes()),
            clock_ms=lambda: now_ms + 60_000,
        ):
            await until(lambda: bool(changes))

    asyncio.run(run())
    (change,) = map(SEAL.unpack, changes)
    assert (change.call, change.now_ms) == (Call.RESUMED, now_ms + 60_000)


@pytest.mark.parametrize("clock_ms", [None, unix_ms])
def test_participant_whose_clock_was_ahead_retries_after_a_restart(
    clock_ms: Callable[[], int] | None,
) -> None:
    """It does not wait until the clock reaches the stored time again."""
    ahead_ms = unix_ms() + 3_600_000
    profile = replace(SLOW, retry_unacknowledged_ms=100)
    before = MessageChannel(
        CHANNEL, "alice", now_ms=ahead_ms, random=Random(1), profile=profile
    )
    before.send(b"hi", ahead_ms)
    channel = MessageChannel.restore(
        before.snapshot(), random=Random(1), profile=profile
    )
    sent: list[Broadcast] = []

    async def broadcast(one: Broadcast) -> None:
        sent.append(one)

    async def run() -> None:
        async with ChannelDriver(channel, broadcast=broadcast, clock_ms=clock_ms):
            await until(lambda: len(sent) > 1)

    asyncio.run(run())


def test_error_of_a_call_goes_to_its_caller() -> None:
    """The driver goes on."""

    async def send() -> None:
        network = Network(SLOW)
        async with network.add("alice") as alice:
            with pytest.raises(EmptyContent):
                await alice.send(b"")
            await alice.send(b"hi")
            assert len(network.sent) == 1

    asyncio.run(send())


@pytest.mark.parametrize("leave", ["wait", "exit"])
def test_error_of_the_transport_at_a_deadline_is_raised(leave: str) -> None:
    """It would otherwise be lost with the timer's task."""
    failed = False

    async def broadcast(one: Broadcast) -> None:
        nonlocal failed
        if one.cause is not Cause.CONTENT:
            failed = True
            raise ConnectionError(one.cause)

    async def wait() -> None:
        channel = MessageChannel(
            CHANNEL, "alice", now_ms=unix_ms(), random=Random(1), profile=QUICK
        )
        async with ChannelDriver(channel, broadcast=broadcast) as driver:
            await driver.send(b"hi")
            if leave == "wait":
                async with asyncio.timeout(PATIENCE_S):
                    await driver.wait_closed()
            else:
                await until(lambda: failed)

    with pytest.raises(ConnectionError):
        asyncio.run(wait())


def test_error_of_a_handler_keeps_no_other_event_from_the_application() -> None:
    """The participant has delivered them, so they never come again."""
    delivered: list[str] = []
    sent: list[Broadcast] = []

    async def broadcast(one: Broadcast) -> None:
        sent.append(one)

    def take(event: Event) -> None:
        if isinstance(event, Delivered):
            delivered.append(event.message_id)
            raise KeyError(event.message_id)
        if isinstance(event, Sent):
            raise KeyError(event.message_id)

    async def run() -> None:
        channel = MessageChannel(
            CHANNEL, "alice", now_ms=unix_ms(), random=Random(1), profile=SLOW
        )
        frames = FrameFactory(CHANNEL)
        async with ChannelDriver(channel, broadcast=broadcast, on_event=take) as driver:
            for number in range(3):
                waits = frames.content(f"m{number}", "bob", history=["x"])
                await driver.receive(value_of(waits))
            with pytest.raises(KeyError, match="x"):
                await driver.receive(value_of(frames.content("x", "bob")))
            assert delivered == ["x", "m0", "m1", "m2"]
            # The frame of a message is also sent, since others depend on it from now.
            with pytest.raises(KeyError):
                await driver.send(b"tea")
            assert [one.message_id for one in sent] == [channel.log[-1]]

    asyncio.run(run())
