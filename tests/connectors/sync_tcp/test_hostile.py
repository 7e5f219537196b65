"""Peers over real connections that send too much, the wrong thing, or nothing."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from connectors.sync_tcp.address import Address, PeerUnreachable
from connectors.sync_tcp.client import Peer
from connectors.sync_tcp.server import SyncServer
from connectors.sync_tcp.stream import FrameStream, Timeouts
from sds_core.prolly.errors import (
    BadFrame,
    LimitExceeded,
    SyncError,
    UnexpectedMessage,
)
from sds_core.prolly.frames import Frame, Kind, frame_of
from sds_core.prolly.item import Item
from sds_core.prolly.outcome import DEFAULT_LIMITS, Limits
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.sessions import BATCHED, BOTH, Protocol

LOOPBACK = Address("127.0.0.1", 0)
TIMES = Timeouts(connect_s=5.0, step_s=5.0, session_s=20.0, retry_s=0.01)
ITEMS = [Item(10 * n, n.to_bytes(32, "little")) for n in range(1, 2_000)]
TREE = ProllyTree(ITEMS)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

protocols = pytest.mark.parametrize("protocol", BOTH, ids=lambda one: one.name)


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[Address]:
    """A server of a test's own making."""
    running = set()

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        running.add(asyncio.current_task())
        with suppress(OSError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(connected, *LOOPBACK)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def endless(frame: Frame) -> Serve:
    """A server that sends one frame again and again."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        while True:
            writer.write(bytes(frame))
            await writer.drain()
            await asyncio.sleep(0)

    return serve


def no_records(hashes: Sequence[bytes]) -> Iterable[pb.Record]:
    """A server without records."""
    return []


def test_items_without_end_are_given_up() -> None:
    """After as many as the limits allow, and without holding more."""
    root = pb.Root(root=bytes(32), height=3)
    part = pb.Items(
        time_differences=[1] * 100,
        message_hashes=random.Random(1).randbytes(3_200),
        has_more=True,
        root=root,
    )

    async def run() -> int:
        async with serving(endless(frame_of(part))) as address:
            client = BATCHED.client(ProllyTree(), Limits(nodes=5_000))
            tracemalloc.start()
            try:
                with pytest.raises(LimitExceeded, match="more than 5000 nodes"):
                    await Peer(address, timeouts=TIMES).synchronise(client)
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    assert asyncio.run(run()) < 5_000_000


def test_records_without_end_are_given_up() -> None:
    """Each one comes once, so a peer cannot keep a client busy with one of them."""
    record = pb.Record(message_hash=bytes(32), value=b"x")
    answer = frame_of(pb.RecordsResponse(records=[record]))

    async def run() -> None:
        async with serving(endless(answer)) as address:
            with pytest.raises(UnexpectedMessage, match="twice"):
                await Peer(address, timeouts=TIMES).records([bytes(32), b"\1" * 32])

    asyncio.run(run())


@pytest.mark.parametrize(
    "answer",
    [
        pb.RecordsResponse(records=[pb.Record()] * 200_000),
        pb.RecordsResponse(records=[pb.Record(headers=[pb.Header()] * 200_000)]),
    ],
)
def test_many_empty_records_are_refused_before_they_are_parsed(
    answer: pb.RecordsResponse,
) -> None:
    """A frame of 16 MiB could hold eight million, which take 700 MB."""

    async def run() -> None:
        async with serving(endless(frame_of(answer))) as address:
            with pytest.raises(LimitExceeded, match="more than 100000 fields"):
                await Peer(address, timeouts=TIMES).records([bytes(32)])

    asyncio.run(run())


@protocols
@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (Frame(Kind.ITEMS, b"\xff"), BadFrame),
        (Frame(Kind.RECORDS_RESPONSE, b""), UnexpectedMessage),
        (Frame(Kind.OPEN, b""), UnexpectedMessage),
    ],
)
def test_a_wrong_answer_ends_the_synchronisation_at_once(
    protocol: Protocol, frame: Frame, error: type[SyncError]
) -> None:
    """It is no broken connection, which would be tried again."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await endless(frame)(reader, writer)

    async def run() -> None:
        async with serving(serve) as address:
            client = protocol.client(TREE, DEFAULT_LIMITS)
            with pytest.raises(error):
                await Peer(address, timeouts=TIMES).synchronise(client)
            assert client.outcome is None

    asyncio.run(run())
    assert connections == 1


@protocols
def test_an_answer_that_never_ends_is_given_up(protocol: Protocol) -> None:
    """A byte now and then is in time for each step, but not for the session."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\0\0\x40\0" + bytes([Kind.ITEMS]))
        while True:
            await asyncio.sleep(0.01)
            writer.write(b"x")

    async def run() -> None:
        async with serving(drip) as address:
            peer = Peer(address, timeouts=TIMES._replace(session_s=0.1))
            with pytest.raises(PeerUnreachable):
                await peer.synchronise(protocol.client(TREE, DEFAULT_LIMITS))

    asyncio.run(run())


def test_a_client_that_reads_nothing_is_dropped_with_what_it_was_sent() -> None:
    """The unsent bytes are not held for it."""
    record = pb.Record(message_hash=bytes(32), value=bytes(8_000_000))
    aborted: list[int] = []
    streams: list[FrameStream] = []

    class Watched(FrameStream):
        async def close(self) -> None:
            streams.append(self)
            await super().close()
            transport = self._writer.transport
            aborted.append(transport.get_write_buffer_size())

    async def run() -> None:
        times = TIMES._replace(step_s=0.1)
        server = SyncServer(lambda: TREE, lambda hashes: [record] * 5, timeouts=times)
        async with server.listening(LOOPBACK) as address:
            _, writer = await asyncio.open_connection(*address, limit=1_000)
            request = frame_of(pb.RecordsRequest(message_hashes=[bytes(32)]))
            writer.write(bytes(request))
            async with asyncio.timeout(10):
                while not aborted:
                    await asyncio.sleep(0.02)
            assert server.figures.refused == 1
            writer.transport.abort()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("connectors.sync_tcp.server.FrameStream", Watched)
        asyncio.run(run())
    assert streams
    assert aborted == [0]


def test_random_bytes_do_not_disturb_others() -> None:
    """A hundred peers send them; one more is served."""
    chance = random.Random(7)

    async def talk(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        with suppress(OSError):
            if chance.random() < 0.5:
                kind = chance.choice(list(Kind))
                body = chance.randbytes(chance.randrange(60))
                writer.write(bytes(Frame(kind, body)))
            writer.write(chance.randbytes(chance.randrange(200)))
            if chance.random() < 0.5:
                writer.write_eof()
                await reader.read()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def run() -> None:
        server = SyncServer(lambda: TREE, no_records, timeouts=TIMES)
        async with server.listening(LOOPBACK) as address:
            for _ in range(100):
                await talk(address)
            client = BATCHED.client(TREE.changed(delete=ITEMS[5:9]), DEFAULT_LIMITS)
            done = await Peer(address, timeouts=TIMES).synchronise(client)
            assert list(done.outcome.only_there) == ITEMS[5:9]
            assert server.figures.connections == 101

    asyncio.run(run())


def test_a_server_that_ends_closes_its_connections() -> None:
    """Also those of peers that are silent."""

    async def run() -> bytes:
        server = SyncServer(lambda: TREE, no_records, timeouts=TIMES)
        # Sooner than a silent peer would be given up.
        async with asyncio.timeout(TIMES.step_s / 2):
            async with server.listening(LOOPBACK) as address:
                reader, writer = await asyncio.open_connection(*address)
                while not server.figures.connections:
                    await asyncio.sleep(0.01)
            left = await reader.read()
        writer.close()
        return left

    assert asyncio.run(run()) == b""
