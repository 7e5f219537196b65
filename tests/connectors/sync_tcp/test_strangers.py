"""Peers that a server does not know: how many, for how long, and who they are."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from connectors.kafka.settings import RecordsLost, TopicReplaced
from connectors.sync_tcp.address import Address, PeerUnreachable
from connectors.sync_tcp.client import Peer
from connectors.sync_tcp.server import MAX_PER_ADDRESS, SyncServer
from connectors.sync_tcp.stream import Timeouts
from connectors.web.access import Access
from connectors.web.config_file import WebConfigFile
from connectors.web.server import WebServer
from connectors.web.side_apps import create_serving_app
from sds_core.audit.serving_figures import ServingFigures
from sds_core.prolly.errors import PeerRefused
from sds_core.prolly.item import Item
from sds_core.prolly.outcome import DEFAULT_LIMITS
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.sessions import BATCHED
from tests.support.tls import Authority

LOOPBACK = Address("127.0.0.1", 0)
TIMES = Timeouts(5.0, 5.0, 5.0, 20.0, 0.01)
SHARED = "shared"
TREE = ProllyTree([Item(10 * n, n.to_bytes(32, "little")) for n in range(1, 100)])


def no_records(hashes: Sequence[bytes]) -> Iterable[pb.Record]:
    """A server without records."""
    return []


def same(peer: Peer) -> asyncio.Future[bool]:
    """Begin a synchronisation with a peer that has the same messages."""

    async def run() -> bool:
        done = await peer.synchronise(BATCHED.client(TREE, DEFAULT_LIMITS))
        return not (done.outcome.only_here or done.outcome.only_there)

    return asyncio.ensure_future(run())


def test_peer_that_says_nothing_is_dropped_soon(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Sooner than one that is slow within a synchronisation."""

    async def run() -> None:
        times = TIMES._replace(first_s=0.05, step_s=60.0)
        server = SyncServer(lambda: TREE, no_records, timeouts=times)
        async with server.listening(LOOPBACK) as address, asyncio.timeout(30):
            reader, writer = await asyncio.open_connection(*address)
            assert await reader.read() == b""
            writer.close()
        assert server.figures.refused == 1

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    assert "a peer's connection broke: TimeoutError" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("kafka-1.internal does not answer"),
        RecordsLost("kafka-1.internal", 0, 1, 2),
        TopicReplaced("kafka-1.internal", "a", "b"),
    ],
    ids=["unreachable", "lost", "replaced"],
)
def test_records_that_cannot_be_read_are_no_fault_of_the_peer(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """The peer gets a reason at once, without the names of Kafka, which the log has."""

    def fail(hashes: Sequence[bytes]) -> Iterable[pb.Record]:
        raise error

    async def run() -> None:
        server = SyncServer(lambda: TREE, fail, timeouts=TIMES)
        async with server.listening(LOOPBACK) as address:
            with pytest.raises(
                PeerRefused, match="the peer cannot read its records now"
            ):
                await Peer(address, timeouts=TIMES).records([bytes(32)])
        assert (server.figures.connections, server.figures.refused) == (1, 0)

    asyncio.run(run())
    # Nothing of asyncio, which reports an error that nothing catches.
    (said,) = caplog.records
    assert (said.name, said.levelno) == ("sds-monitor", logging.WARNING)
    assert "kafka-1.internal" in said.getMessage()


def test_an_address_cannot_take_all_connections() -> None:
    """One more is refused at once, with the reason; those that it has continue."""

    async def run() -> None:
        # Silence alone must not make room.
        times = TIMES._replace(first_s=60.0)
        server = SyncServer(lambda: TREE, no_records, timeouts=times)
        async with server.listening(LOOPBACK) as address:
            silent = [
                await asyncio.open_connection(*address) for _ in range(MAX_PER_ADDRESS)
            ]
            while server.figures.connections < MAX_PER_ADDRESS:
                await asyncio.sleep(0.01)
            with pytest.raises(
                PeerRefused, match="are already connected from this address"
            ):
                await same(Peer(address, timeouts=TIMES))
            silent.pop()[1].close()
            async with asyncio.timeout(30):
                while True:
                    try:
                        assert await same(Peer(address, timeouts=TIMES))
                        break
                    except PeerRefused:
                        await asyncio.sleep(0.01)
            for _, writer in silent:
                writer.close()

    asyncio.run(run())


def test_other_peers_are_answered_while_an_answer_is_computed() -> None:
    """The event loop computes nothing."""
    begun, may_end = threading.Event(), threading.Event()
    trees = iter([True])

    class SlowTree(ProllyTree):
        """A tree whose part takes as long as the test likes to cut out."""

        def between(self, start_ns: int, end_ns: int) -> ProllyTree:
            """Return a part."""
            begun.set()
            assert may_end.wait(30)
            return super().between(start_ns, end_ns)

    slow_tree = SlowTree(TREE)

    async def run() -> None:
        server = SyncServer(
            lambda: slow_tree if next(trees, False) else TREE,
            no_records,
            timeouts=TIMES,
        )
        async with server.listening(LOOPBACK) as address:
            slow = same(Peer(address, timeouts=TIMES))
            assert await asyncio.to_thread(begun.wait, 30)
            assert await same(Peer(address, timeouts=TIMES))
            assert not slow.done()
            may_end.set()
            assert await slow

    try:
        asyncio.run(run())
    finally:
        may_end.set()


def test_other_peers_are_answered_while_records_are_looked_up() -> None:
    """A slow lookup takes no thread that computes answers."""
    begun, may_end = threading.Event(), threading.Event()

    def slow(hashes: Sequence[bytes]) -> Iterable[pb.Record]:
        begun.set()
        assert may_end.wait(30)
        return []

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        server = SyncServer(lambda: TREE, slow, timeouts=TIMES)
        async with server.listening(LOOPBACK) as address:
            lookup = asyncio.ensure_future(
                Peer(address, timeouts=TIMES).records([bytes(32)])
            )
            while not begun.is_set():
                await asyncio.sleep(0.01)
            assert await same(Peer(address, timeouts=TIMES))
            assert not lookup.done()
            may_end.set()
            assert await lookup == []

    try:
        asyncio.run(run())
    finally:
        may_end.set()


def test_only_peers_with_a_certificate_are_served(tmp_path: Path) -> None:
    """Configured as the web server is; the handshake of others ends soon, too."""
    authority = Authority(tmp_path)
    authority.issue("127.0.0.1")
    known = authority.issue("mirror-1")
    file = tmp_path / "web.yml"
    file.write_text(
        "tls_server_config: {cert_file: 127.0.0.1.pem, key_file: 127.0.0.1.key, "
        "client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem}"
    )
    stranger = ssl.create_default_context(cafile=authority.ca_file)
    friend = ssl.create_default_context(cafile=authority.ca_file)
    friend.load_cert_chain(known.certificate_file, known.key_file)

    async def run() -> None:
        times = TIMES._replace(first_s=0.5)
        tls = Access(WebConfigFile(file)).tls
        server = SyncServer(lambda: TREE, no_records, timeouts=times, tls=tls)
        async with server.listening(LOOPBACK) as address:
            assert await same(Peer(address, timeouts=TIMES, tls=friend))
            for context in (stranger, None):
                with pytest.raises(PeerUnreachable):
                    await same(Peer(address, timeouts=TIMES, tls=context))
            async with asyncio.timeout(30):
                reader, writer = await asyncio.open_connection(*address)
                assert await reader.read() == b""
                writer.close()
        assert server.figures.sessions == 1

    asyncio.run(run())


def known(token: str) -> bool:
    """The rule of a server with one token."""
    return token == SHARED


def test_only_peers_with_the_token_are_served() -> None:
    """Others are refused and counted; a token that is not needed does no harm."""

    async def run() -> None:
        server = SyncServer(lambda: TREE, no_records, timeouts=TIMES, admits=known)
        async with server.listening(LOOPBACK) as address:
            assert await same(Peer(address, timeouts=TIMES, token=SHARED))
            assert await Peer(address, timeouts=TIMES, token=SHARED).records([]) == []
            for token in (None, "", "other"):
                with pytest.raises(
                    PeerRefused, match="the other mirror accepts only a valid tok"
                ):
                    await same(Peer(address, timeouts=TIMES, token=token))
        assert (server.figures.sessions, server.figures.refused) == (1, 3)
        server = SyncServer(lambda: TREE, no_records, timeouts=TIMES)
        async with server.listening(LOOPBACK) as address:
            assert await same(Peer(address, timeouts=TIMES, token=SHARED))

    asyncio.run(run())


def test_strangers_without_the_token_keep_no_peer_out() -> None:
    """Neither silent ones, nor those that send the begin of a long message."""

    async def run() -> None:
        times = TIMES._replace(first_s=60.0)
        server = SyncServer(lambda: TREE, no_records, timeouts=times, admits=known)
        async with server.listening(LOOPBACK) as address:
            silent = [await asyncio.open_connection(*address) for _ in range(150)]
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"\0\1\0\0\x10" + bytes(65_536))
            async with asyncio.timeout(30):
                answer = await reader.read()
            assert b"at most 1024 bytes are allowed" in answer
            assert await same(Peer(address, timeouts=TIMES, token=SHARED))
            for _, each in (*silent, (reader, writer)):
                each.close()

    asyncio.run(run())


def test_handshakes_that_never_end_keep_no_peer_out(tmp_path: Path) -> None:
    """More of them than the server allows, from several addresses."""
    authority = Authority(tmp_path)
    authority.issue("127.0.0.1")
    file = tmp_path / "web.yml"
    file.write_text(
        "tls_server_config: {cert_file: 127.0.0.1.pem, key_file: 127.0.0.1.key}"
    )
    trusting = ssl.create_default_context(cafile=authority.ca_file)

    async def run() -> None:
        times = TIMES._replace(first_s=60.0)
        tls = Access(WebConfigFile(file)).tls
        server = SyncServer(lambda: TREE, no_records, timeouts=times, tls=tls)
        async with server.listening(LOOPBACK) as address:
            silent = [
                await asyncio.open_connection(
                    *address, local_addr=(f"127.0.0.{1 + number % 8}", 0)
                )
                for number in range(300)
            ]
            assert await same(Peer(address, timeouts=TIMES, tls=trusting))
            assert server.figures.connections == 1
            for _, writer in silent:
                writer.close()

    asyncio.run(run())


def test_figures_of_a_server_are_metrics() -> None:
    """It is ready once it serves."""
    figures = ServingFigures(connections=7, refused=2)
    with WebServer(create_serving_app(figures), port=0) as server:
        assert httpx.get(f"{server.url}/readyz").text == (
            "not ready: the server is still reading the topic\n"
        )
        figures.messages = 99
        assert httpx.get(f"{server.url}/readyz").status_code == 200
        text = httpx.get(f"{server.url}/metrics").text
    assert "\nsds_audit_serve_connections_total 7.0\n" in text
    assert "\nsds_audit_serve_messages 99.0\n" in text
