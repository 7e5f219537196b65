"""A node of MVDS in asyncio: its epochs, its times, and the order of its results."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from connectors.event_loop.driver import NotStored
from connectors.event_loop.mvds import NodeDriver, unix_s
from connectors.storage.mvds import SqliteNodeStorage
from sds_core.mvds.changes import Changes
from sds_core.mvds.events import Acknowledged, Delivered, Event
from sds_core.mvds.node import Node
from sds_core.mvds.node_errors import UnknownGroup
from sds_core.mvds.options import Mode, Options
from sds_core.mvds.payload import Message, NotAPayload, Payload, decode, encode
from tests.support.mvds.network import GROUP, group_of

BATCH = Options(mode=Mode.BATCH)
NAMES = (b"alice", b"bob", b"carol")


class Epochs:
    """Lets the epochs of all drivers end together."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        self.slept_s: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Wait for `end`."""
        self.slept_s.append(seconds)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    async def end(self, count: int = 1) -> None:
        """End epochs, and let everything happen that follows."""
        for _ in range(count):
            await settle()
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
        await settle()


async def settle() -> None:
    """Let all tasks run that wait for nothing else."""
    for _ in range(20):
        await asyncio.sleep(0)


class Network:
    """Drivers of one group in one event loop.

    Attributes:
        drivers: By name.
        events: Events of each.
        sent: Payloads with sender and receiver, in order.
        transport: Awaited with sender and receiver before a payload arrives.
    """

    def __init__(
        self, *names: bytes, options: Options = BATCH, clock_s: Callable[[], int]
    ) -> None:
        self.epochs = Epochs()
        self.drivers: dict[bytes, NodeDriver] = {}
        self.events: dict[bytes, list[Event]] = {}
        self.sent: list[tuple[bytes, bytes, bytes]] = []
        self.transport: Callable[[bytes, bytes], Awaitable[object]] | None = None
        for node in group_of(names, lambda _: options):
            self.add(node, clock_s=clock_s)

    def add(self, node: Node, **more: Any) -> NodeDriver:
        """Add a driver."""
        name = node.peer_id
        events = self.events.setdefault(name, [])

        async def send(peer: bytes, value: bytes) -> None:
            self.sent.append((name, peer, value))
            if self.transport is not None:
                await self.transport(name, peer)
            self.drivers[peer].receive(name, value)

        self.drivers[name] = NodeDriver(
            node,
            send=send,
            on_event=more.pop("on_event", events.append),
            sleep=self.epochs.sleep,
            **more,
        )
        return self.drivers[name]

    def bodies(self, name: bytes) -> list[bytes]:
        """Return the bodies that a node delivered."""
        events = self.events[name]
        return [one.message.body for one in events if isinstance(one, Delivered)]


def run(
    live: Callable[[Network], Awaitable[None]],
    *names: bytes,
    options: Options = BATCH,
    clock_s: Callable[[], int] = lambda: 1_000,
) -> None:
    """Run a program among drivers, and check that it leaves no task."""

    async def main() -> None:
        network = Network(*names, options=options, clock_s=clock_s)
        async with AsyncExitStack() as stack:
            for driver in network.drivers.values():
                await stack.enter_async_context(driver)
            await live(network)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


@pytest.mark.parametrize("mode", Mode)
def test_message_is_delivered_and_acknowledged(mode: Mode) -> None:
    """Every epoch has the length that the application chose."""

    async def live(network: Network) -> None:
        sent = network.drivers[b"alice"].append(GROUP, b"tea")
        await network.epochs.end(6)
        assert network.bodies(b"bob") == [b"tea"]
        assert network.events[b"alice"] == [Acknowledged(sent, b"bob")]
        assert set(network.epochs.slept_s) == {1.0}

    run(live, *NAMES[:2], options=Options(mode=mode))


@pytest.mark.rule("mvds-flow-every")
def test_payloads_are_made_every_epoch() -> None:
    """With what was appended and what arrived since the one before."""

    async def live(network: Network) -> None:
        await network.epochs.end()
        for number in range(5):
            for driver in network.drivers.values():
                driver.append(GROUP, b"%d" % number)
            before = len(network.sent)
            await network.epochs.end()
            new = network.sent[before:]
            assert [one[:2] for one in new] == [(b"alice", b"bob"), (b"bob", b"alice")]
            for _, _, value in new:
                payload = decode(value)
                assert [one.body for one in payload.messages] == [b"%d" % number]
                assert len(payload.acks) == min(number, 1)

    run(live, *NAMES[:2])


def test_messages_have_unix_seconds_and_an_id_of_their_own() -> None:
    """Two equal ones in one second would have one id."""

    async def live(network: Network) -> None:
        alice = network.drivers[b"alice"]
        ids = [alice.append(GROUP, b"tea") for _ in range(3)]
        assert len(set(ids)) == 3
        alice.append(GROUP, b"coffee")
        await network.epochs.end(2)
        delivered = [
            (one.message.body, one.message.timestamp)
            for one in network.events[b"bob"]
            if isinstance(one, Delivered)
        ]
        assert delivered == [
            (b"tea", 1_000),
            (b"tea", 1_001),
            (b"tea", 1_002),
            (b"coffee", 1_000),
        ]

    run(live, *NAMES[:2])
    assert 1_700_000_000 < unix_s() < 10_000_000_000


def test_payload_that_the_transport_fails_to_send_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The node sends its records again; a mistake is logged with its traceback."""
    errors = [ConnectionResetError("reset"), KeyError("a mistake")]

    async def live(network: Network) -> None:
        async def fail(sender: bytes, receiver: bytes) -> None:
            if errors:
                raise errors.pop(0)

        network.transport = fail
        network.drivers[b"alice"].append(GROUP, b"tea")
        await network.epochs.end(10)
        assert network.bodies(b"bob") == [b"tea"]

    run(live, *NAMES[:2])
    assert [bool(one.exc_info) for one in caplog.records] == [False, True]


def test_peer_that_is_slow_holds_up_no_other() -> None:
    """What is made for it meanwhile is lost, and sent again."""

    async def live(network: Network) -> None:
        go_on = asyncio.Event()

        async def carry(sender: bytes, receiver: bytes) -> None:
            if receiver == b"carol":
                await go_on.wait()

        network.transport = carry
        alice = network.drivers[b"alice"]
        alice.append(GROUP, b"first")
        await network.epochs.end(1)
        alice.append(GROUP, b"second")
        await network.epochs.end(3)
        assert network.bodies(b"bob") == [b"first", b"second"]
        assert network.bodies(b"carol") == []
        to_carol = [one for one in network.sent if one[:2] == (b"alice", b"carol")]
        assert len(to_carol) == 1
        go_on.set()
        await network.epochs.end(10)
        assert network.bodies(b"carol") == [b"first", b"second"]

    run(live, *NAMES, options=Options(mode=Mode.BATCH, forward=False))


def test_payload_under_way_at_the_end_is_cancelled() -> None:
    """The driver waits for no peer."""

    async def live(network: Network) -> None:
        async def hang(sender: bytes, receiver: bytes) -> None:
            await asyncio.Event().wait()

        network.transport = hang
        network.drivers[b"alice"].append(GROUP, b"tea")
        await network.epochs.end(2)
        assert len(network.sent) == 1

    run(live, *NAMES[:2])


def test_refused_calls_raise_what_the_node_raises() -> None:
    """Nothing changes."""

    async def live(network: Network) -> None:
        alice = network.drivers[b"alice"]
        with pytest.raises(UnknownGroup):
            alice.append(b"x" * 32, b"tea")
        with pytest.raises(NotAPayload):
            alice.receive(b"bob", b"\xff")
        await network.epochs.end(2)
        assert network.sent == []

    run(live, *NAMES[:2])


def test_ephemeral_message_is_sent_once_in_the_next_epoch() -> None:
    """Also by a node that offers its messages first; a message may choose its mode."""

    async def live(network: Network) -> None:
        alice = network.drivers[b"alice"]
        alice.append(GROUP, b"typing", ephemeral=True)
        alice.append(GROUP, b"tea", mode=Mode.BATCH)
        await network.epochs.end()
        assert network.bodies(b"bob") == [b"typing", b"tea"]

    run(live, *NAMES[:2], options=Options())


def test_state_is_stored_before_anything_goes_out(tmp_path: Path) -> None:
    """Events and payloads alike; the next process continues."""
    file = tmp_path / "alice.sqlite"
    seen: list[int] = []

    async def live(network: Network, storage: SqliteNodeStorage) -> None:
        def stored_epoch() -> int:
            state = storage.load()
            assert state is not None
            return state.epoch

        async def look(sender: bytes, receiver: bytes) -> None:
            if sender == b"alice":
                seen.append(stored_epoch())

        network.transport = look
        node = Node(b"alice", BATCH)
        node.add_group(GROUP, [b"bob"])
        bob = Node(b"bob", BATCH)
        bob.add_group(GROUP, [b"alice"])
        async with network.add(node, storage=storage) as alice, network.add(bob):
            alice.append(GROUP, b"tea")
            await network.epochs.end(3)
            alice.append(GROUP, b"coffee")

    async def main() -> None:
        with SqliteNodeStorage(file) as storage:
            network = Network(clock_s=lambda: 1_000)
            storage.store(Node(b"alice").snapshot())
            await live(network, storage)
        assert seen == [1]
        with SqliteNodeStorage(file) as storage:
            state = storage.load()
            assert state is not None
            node = Node.restore(b"alice", state, BATCH)
            assert node.epoch == 4
            (record,) = node.records
            found = node.message(record.message_id)
            assert found is not None
            assert found.body == b"coffee"

    asyncio.run(main())


def test_message_that_cannot_be_stored_is_not_acknowledged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Else its sender would stop to send what a restart does not know."""

    class FullDisk:
        is_full = False

        def load(self) -> Changes | None:
            return None

        def store(self, changes: Changes) -> None:
            if self.is_full and changes.messages:
                raise OSError(errno.ENOSPC, "the disk is full")

    async def main() -> None:
        network = Network(clock_s=lambda: 1_000)
        alice, bob = group_of(NAMES[:2], lambda _: BATCH)
        disk = FullDisk()
        async with network.add(alice) as driver:
            full = network.add(bob, storage=disk)
            async with full:
                driver.append(GROUP, b"tea")
                disk.is_full = True
                await network.epochs.end(6)
                assert network.bodies(b"bob") == []
                assert network.events[b"alice"] == []
                with pytest.raises(NotStored):
                    full.append(GROUP, b"coffee")
                with pytest.raises(NotStored):
                    await full.wait_closed()

    with pytest.raises(NotStored):
        asyncio.run(main())
    # To its sender, what it did not take is lost on the way.
    assert {one.getMessage()[:33] for one in caplog.records} == {
        "a payload for peer b'bob' is lost"
    }


def test_error_of_a_handler_keeps_no_other_event_from_the_application(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The node has delivered them, so they never come again."""
    delivered: list[bytes] = []

    def take(event: Event) -> None:
        if isinstance(event, Delivered):
            delivered.append(event.message.body)
            raise KeyError(event.message.body)

    async def main() -> None:
        network = Network(clock_s=lambda: 1_000)
        _, bob = group_of(NAMES[:2], lambda _: BATCH)
        messages = tuple(Message(GROUP, 1, body) for body in (b"one", b"two", b"three"))
        async with network.add(bob, on_event=take) as driver:
            with pytest.raises(KeyError, match="one"):
                driver.receive(b"alice", encode(Payload(messages=messages)))

    asyncio.run(main())
    assert delivered == [b"one", b"two", b"three"]
    assert [one.getMessage() for one in caplog.records] == [
        "the handler of events failed again"
    ] * 2


def test_error_of_the_application_ends_the_driver() -> None:
    """It is raised at the end, and by `wait_closed`."""

    async def main() -> None:
        network = Network(clock_s=lambda: 1_000)

        def fail(event: Event) -> None:
            raise KeyError(type(event).__name__)

        options = Options(mode=Mode.BATCH, max_sends=1)
        (alice, _) = group_of(NAMES[:2], lambda _: options)
        async with network.add(alice, on_event=fail) as driver:
            driver.append(GROUP, b"tea")
            await network.epochs.end(5)
            with pytest.raises(KeyError, match="GaveUp"):
                await driver.wait_closed()

    with pytest.raises(KeyError, match="GaveUp"):
        asyncio.run(main())


def test_peer_whose_transport_hangs_gets_a_later_payload() -> None:
    """A call without an end is cancelled."""

    async def main() -> None:
        node, called = Node(b"alice", BATCH), asyncio.Queue[bytes]()
        node.add_group(GROUP, [b"bob"])

        async def send(peer: bytes, value: bytes) -> None:
            called.put_nowait(value)
            await asyncio.Event().wait()

        async with NodeDriver(
            node, send=send, epoch_s=0.001, send_timeout_s=0.01
        ) as driver:
            driver.append(GROUP, b"tea")
            for _ in range(2):
                await asyncio.wait_for(called.get(), 20)

    asyncio.run(main())
