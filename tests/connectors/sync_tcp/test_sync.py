"""Synchronisation over real connections on loopback."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import pytest
from google.protobuf.message import Message

from connectors.sockets.listener import PortInUse
from connectors.sync_tcp import client as client_module
from connectors.sync_tcp import server as server_module
from connectors.sync_tcp.address import (
    Address,
    BadAddress,
    PeerUnreachable,
    parse_address,
)
from connectors.sync_tcp.client import Peer, Synchronised
from connectors.sync_tcp.server import SyncServer
from connectors.sync_tcp.stream import FrameStream, Timeouts
from sds_core.prolly.errors import (
    LimitExceeded,
    PeerRefused,
    SyncError,
    UnexpectedMessage,
)
from sds_core.prolly.frames import Frame, Kind, frame_of
from sds_core.prolly.item import Item
from sds_core.prolly.outcome import DEFAULT_LIMITS, Limits
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.sessions import BOTH, Protocol

LOOPBACK = Address("127.0.0.1", 0)
SHORT = Timeouts(connect_s=5.0, step_s=5.0, session_s=20.0, retry_s=0.01)
ITEMS = [Item(10 * n, n.to_bytes(32, "little")) for n in range(1, 3_000)]
TREE = ProllyTree(ITEMS)
LACKING = TREE.changed(delete=ITEMS[::50])

protocols = pytest.mark.parametrize("protocol", BOTH, ids=lambda one: one.name)


def no_records(hashes: Sequence[bytes]) -> Iterable[pb.Record]:
    """A server without records."""
    return []


def server_of(
    tree: ProllyTree, limits: Limits = DEFAULT_LIMITS, timeouts: Timeouts = SHORT
) -> SyncServer:
    """A server of one tree."""
    return SyncServer(lambda: tree, no_records, limits, timeouts)


@asynccontextmanager
async def breaking(target: Address, allowances: list[int]) -> AsyncIterator[Address]:
    """A proxy whose connections break after so many bytes of the server."""
    relays = set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relays.add(asyncio.current_task())
        theirs, to_them = await asyncio.open_connection(*target)
        left = allowances.pop(0) if allowances else None

        async def upward() -> None:
            while data := await reader.read(1_000):
                to_them.write(data)
            to_them.close()

        task = asyncio.create_task(upward())
        with suppress(OSError):
            while data := await theirs.read(500):
                if left is not None:
                    data = data[:left]
                    left -= len(data)
                writer.write(data)
                await writer.drain()
                if left == 0:
                    break
        task.cancel()
        for one in (writer, to_them):
            one.close()
            with suppress(OSError):
                await one.wait_closed()

    proxy = await asyncio.start_server(relay, *LOOPBACK)
    try:
        yield Address("127.0.0.1", proxy.sockets[0].getsockname()[1])
    finally:
        proxy.close()
        await asyncio.gather(*relays, return_exceptions=True)


@protocols
def test_both_sides_are_compared(protocol: Protocol) -> None:
    """And the traffic is counted."""

    async def run() -> Synchronised:
        async with server_of(TREE).listening(LOOPBACK) as address:
            client = protocol.client(LACKING, DEFAULT_LIMITS)
            return await Peer(address, timeouts=SHORT).synchronise(client)

    done = asyncio.run(run())
    assert list(done.outcome.only_there) == ITEMS[::50]
    assert done.outcome.only_here == []
    assert done.rounds >= 2
    assert min(done.received_bytes, done.sent_bytes) > 0


@protocols
@pytest.mark.parametrize("allowances", [[0], [3, 700], [900, 2_000, 40, 5_000]])
def test_a_broken_connection_is_opened_again(
    protocol: Protocol, allowances: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it broke, also within a frame."""

    async def run() -> Synchronised:
        server = server_of(TREE)
        async with (
            server.listening(LOOPBACK) as address,
            breaking(address, list(allowances)) as proxy,
        ):
            client = protocol.client(LACKING, DEFAULT_LIMITS)
            done = await Peer(proxy, timeouts=SHORT).synchronise(client)
            assert 1 < server.figures.connections <= len(allowances) + 1
            return done

    done = asyncio.run(run())
    assert list(done.outcome.only_there) == ITEMS[::50]


@protocols
def test_a_peer_that_always_breaks_off_is_unreachable(protocol: Protocol) -> None:
    """After five connections."""

    async def run() -> None:
        server = server_of(TREE)
        async with (
            server.listening(LOOPBACK) as address,
            breaking(address, [10] * 9) as proxy,
        ):
            client = protocol.client(LACKING, DEFAULT_LIMITS)
            with pytest.raises(PeerUnreachable, match="cannot be reached"):
                await Peer(proxy, timeouts=SHORT).synchronise(client)
            assert server.figures.connections == client_module.ATTEMPTS

    asyncio.run(run())


def test_nobody_there_is_unreachable() -> None:
    """With what to check."""
    client = BOTH[1].client(LACKING, DEFAULT_LIMITS)
    with pytest.raises(PeerUnreachable, match="audit serve"):
        asyncio.run(Peer(Address("127.0.0.1", 1)).synchronise(client))


def test_a_silent_peer_is_given_up() -> None:
    """It accepts connections and says nothing."""

    async def run() -> None:
        async def say_nothing(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(say_nothing, *LOOPBACK)
        port = server.sockets[0].getsockname()[1]
        client = BOTH[1].client(LACKING, DEFAULT_LIMITS)
        peer = Peer(Address("127.0.0.1", port), timeouts=SHORT._replace(step_s=0.05))
        with pytest.raises(PeerUnreachable):
            await peer.synchronise(client)
        server.close()

    asyncio.run(run())


async def talk(address: Address, data: bytes) -> bytes:
    """Send bytes, and return what comes until the server closes the connection."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(data)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        (
            pb.RecordsRequest(message_hashes=[b""] * 50_000),
            b"has 100000 bytes, but at most 40000",
        ),
        (
            pb.Open(tail_children=[b""] * 50_000),
            b"a message has more than 100 fields",
        ),
    ],
    ids=["records", "opening"],
)
def test_request_of_many_empty_items_is_refused_before_it_is_parsed(
    message: Message, refusal: bytes
) -> None:
    """They would take 16 or 17 times the memory of the frame."""

    async def run() -> None:
        async with server_of(TREE).listening(LOOPBACK) as address:
            assert refusal in await talk(address, bytes(frame_of(message)))

    asyncio.run(run())


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">IB", 2**31, Kind.OPEN),
        struct.pack(">IB", 1, 77) + b"x",
        bytes(Frame(Kind.OPEN, b"\xff\xff")),
        bytes(Frame(Kind.STEP, b"")),
        bytes(frame_of(pb.RecordsRequest(message_hashes=[b"short"]))),
        bytes(frame_of(pb.RecordsRequest(message_hashes=[bytes(32)] * 1_001))),
        bytes(frame_of(pb.Want())),
    ],
)
def test_a_peer_that_does_not_follow_the_protocol_is_refused(data: bytes) -> None:
    """With the reason; others are served."""

    async def run() -> None:
        server = server_of(TREE)
        async with server.listening(LOOPBACK) as address:
            answer = await talk(address, data)
            assert answer[4] == Kind.REFUSAL
            assert server.figures.refused == 1
            client = BOTH[0].client(LACKING, DEFAULT_LIMITS)
            await Peer(address, timeouts=SHORT).synchronise(client)

    asyncio.run(run())


def test_a_slow_peer_loses_its_connection() -> None:
    """One that sends half a frame, and no more."""

    async def run() -> None:
        server = server_of(TREE, timeouts=SHORT._replace(step_s=0.1))
        async with server.listening(LOOPBACK) as address:
            assert await talk(address, b"\0\0") == b""
            assert server.figures.refused == 1

    asyncio.run(run())


def test_one_peer_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """And told so."""
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 2)

    async def run() -> None:
        server = server_of(TREE)
        async with server.listening(LOOPBACK) as address:
            held = [await asyncio.open_connection(*address) for _ in range(2)]
            client = BOTH[1].client(LACKING, DEFAULT_LIMITS)
            with pytest.raises(
                PeerRefused, match="2 peers, the maximum, are already connected"
            ):
                await Peer(address, timeouts=SHORT).synchronise(client)
            for _, writer in held:
                writer.close()

    asyncio.run(run())


def test_the_server_counts_clients_that_have_other_messages() -> None:
    """By the roots of the document's protocol: it may lack some itself."""

    async def run() -> None:
        server = server_of(TREE)
        async with server.listening(LOOPBACK) as address:
            for tree in (TREE, LACKING):
                client = BOTH[0].client(tree, DEFAULT_LIMITS)
                await Peer(address, timeouts=SHORT).synchronise(client)
            assert server.figures.sessions == 2
            assert server.figures.differing_roots == 1

    asyncio.run(run())


def test_a_session_keeps_its_tree_while_messages_arrive() -> None:
    """The next one has them."""
    trees = [TREE]

    async def run() -> None:
        server = SyncServer(lambda: trees[-1], no_records, timeouts=SHORT)
        async with server.listening(LOOPBACK) as address:
            peer = Peer(address, timeouts=SHORT)
            for expected in (ITEMS[::50], [*ITEMS[::50], Item(10**6, bytes(32))]):
                client = BOTH[1].client(LACKING, DEFAULT_LIMITS)
                done = await peer.synchronise(client)
                assert list(done.outcome.only_there) == expected
                trees.append(TREE.changed(insert=[Item(10**6, bytes(32))]))

    asyncio.run(run())


def test_records_come_in_parts() -> None:
    """In the order that was asked for; those that the peer lacks are left out.

    Records that come again after a broken connection do not count twice.
    """
    known = {
        one.message_hash: pb.Record(message_hash=one.message_hash, value=bytes(9_000))
        for one in ITEMS[:1_200]
    }

    def records(hashes: Sequence[bytes]) -> Iterable[pb.Record]:
        return [known[one] for one in hashes if one in known]

    async def run() -> list[pb.Record]:
        total = sum(one.ByteSize() for one in known.values())
        limits = Limits(frame_bytes=100_000, records_bytes=total)
        server = SyncServer(lambda: TREE, records, limits, SHORT)
        async with (
            server.listening(LOOPBACK) as address,
            breaking(address, [1_000_000]) as proxy,
        ):
            peer = Peer(proxy, limits, SHORT)
            wanted = [one.message_hash for one in ITEMS[:1_300]]
            random.Random(1).shuffle(wanted)
            found = await peer.records(wanted)
            assert [one.message_hash for one in found] == [
                one for one in wanted if one in known
            ]
            return found

    assert all(len(one.value) == 9_000 for one in asyncio.run(run()))


def test_records_that_were_not_asked_for_are_refused() -> None:
    """The peer answers with another one."""

    def records(hashes: Sequence[bytes]) -> Iterable[pb.Record]:
        return [pb.Record(message_hash=b"\1" * 32)]

    async def run() -> None:
        server = SyncServer(lambda: TREE, records, timeouts=SHORT)
        async with server.listening(LOOPBACK) as address:
            with pytest.raises(
                UnexpectedMessage,
                match="a record twice, or a record that was not requested",
            ):
                await Peer(address, timeouts=SHORT).records([bytes(32)])

    asyncio.run(run())


def test_records_of_a_call_are_limited_in_bytes() -> None:
    """A peer that sends long ones is refused before they fill the memory."""

    def records(hashes: Sequence[bytes]) -> Iterable[pb.Record]:
        return [pb.Record(message_hash=one, value=bytes(9_000)) for one in hashes]

    async def run() -> None:
        server = SyncServer(lambda: TREE, records, timeouts=SHORT)
        async with server.listening(LOOPBACK) as address:
            peer = Peer(address, Limits(records_bytes=50_000), SHORT)
            wanted = [one.message_hash for one in ITEMS[:9]]
            assert len(await peer.records(wanted[:5])) == 5
            with pytest.raises(
                LimitExceeded, match="the records have more than 50000 bytes"
            ):
                await peer.records(wanted)

    asyncio.run(run())


def test_each_record_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a call does not grow with the square of the number of records."""
    measured: list[bytes] = []

    class Measured(NamedTuple):
        message_hash: bytes

        def ByteSize(self) -> int:
            measured.append(self.message_hash)
            return 9_000

    received = client_module._records  # noqa: SLF001

    async def read(stream: FrameStream) -> list[Measured]:
        return [Measured(one.message_hash) for one in await received(stream)]

    def records(hashes: Sequence[bytes]) -> Iterable[pb.Record]:
        return [pb.Record(message_hash=one, value=bytes(9_000)) for one in hashes]

    monkeypatch.setattr(client_module, "_records", read)
    wanted = [one.message_hash for one in ITEMS[:20]]

    async def run() -> None:
        server = SyncServer(lambda: TREE, records, Limits(frame_bytes=50_000), SHORT)
        async with server.listening(LOOPBACK) as address:
            await Peer(address, timeouts=SHORT).records(wanted)

    asyncio.run(run())
    assert measured == wanted


def test_a_client_refuses_long_frames() -> None:
    """Of a server that may send longer ones."""

    async def run() -> None:
        async with server_of(TREE).listening(LOOPBACK) as address:
            client = BOTH[0].client(LACKING, DEFAULT_LIMITS)
            peer = Peer(address, Limits(frame_bytes=200), SHORT)
            with pytest.raises(LimitExceeded):
                await peer.synchronise(client)

    asyncio.run(run())


def test_an_address_in_use_is_said() -> None:
    """With the address."""

    async def run() -> None:
        async with server_of(TREE).listening(LOOPBACK) as address:
            with pytest.raises(PortInUse, match=f"port {address.port} "):
                async with server_of(TREE).listening(address):
                    pass

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("mirror-2:9111", Address("mirror-2", 9_111)),
        ("[::1]:5", Address("::1", 5)),
    ],
)
def test_addresses_are_host_and_port(text: str, address: Address) -> None:
    """And written as they were read."""
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "host", ":1", "host:", "host:0", "host:65536", "::1:5", "host:²"),
        *("a..b:1", ".a:1", "\u200b:1", "a\0b:1", f"{64 * 'a'}:1"),
    ],
)
def test_other_texts_are_no_addresses(text: str) -> None:
    """With the text."""
    with pytest.raises(BadAddress, match="is not HOST:PORT"):
        parse_address(text)


def test_errors_of_synchronisation_have_one_base() -> None:
    """So that a caller can catch them."""
    assert issubclass(PeerRefused, SyncError)
