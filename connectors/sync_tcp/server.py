"""Synchronises with peers, by a batched protocol or 75/WAKU2-SYNC; serves records.

A peer that does not follow the protocol, or is too slow, loses its connection. If
tokens are configured, a client becomes a peer only if it sends a valid token. Answers
are computed in threads, so that a slow answer does not delay other peers.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

from connectors.sockets.listener import Listener, listen
from connectors.sockets.tls import NewestContext
from connectors.sync_tcp.address import Address
from connectors.sync_tcp.fields import check_fields
from connectors.sync_tcp.stream import DEFAULT_TIMEOUTS, FrameStream, Timeouts
from sds_core.audit.serving_figures import ServingFigures
from sds_core.prolly.batched.server import BatchedServer
from sds_core.prolly.document import DocumentServer
from sds_core.prolly.errors import BadFrame, LimitExceeded, SyncError, Unauthorised
from sds_core.prolly.frames import Frame, Kind, frame_of, message_in
from sds_core.prolly.item import HASH_BYTES
from sds_core.prolly.outcome import DEFAULT_LIMITS, Limits, Server
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree

_log = logging.getLogger("sds-monitor")

MAX_CONNECTIONS = 16
"""Maximum number of peers that are connected at the same time."""

MAX_PER_ADDRESS = 4
"""Maximum number of peers from one address, so that others can connect too."""

_MAX_HANDSHAKES = 100
"""Maximum number of connections whose clients are not yet accepted as peers."""

_CREDENTIAL_BYTES = 1_024
"""Maximum length of a client's first frame if this frame must contain a token."""

_MAX_RECORDS = 1_000
"""Maximum number of records in one request."""

_REQUESTED_BYTES = 40
"""Upper bound of the length of an encoded hash in a request for records, bytes."""

_MAX_OPEN_FIELDS = 100
"""Maximum number of fields of an `Open`. It has one for each level of a tree, and six
others."""

_OPENING = {Kind.OPEN, Kind.EXCHANGE_ROOT_REQUEST}


class SyncServer:
    """Serves this side's messages to peers.

    Args:
        tree: Function that returns the current tree. Each synchronisation calls it
            once.
        records: Function that returns the records of message hashes. It runs in a
            thread, for at most `MAX_CONNECTIONS` peers at the same time. If it raises
            an error, the peer's request is refused.
        limits: Limits of requests.
        timeouts: How long to wait for peers.
        tls: Function that returns the TLS context for a new connection; None for no
            TLS.
        figures: Counters.
        admits: Function that returns whether a token is valid. If a client sends no
            token, its token is empty. If the function accepts an empty token, clients
            need no token.
    """

    def __init__(
        self,
        tree: Callable[[], ProllyTree],
        records: Callable[[Sequence[bytes]], Iterable[pb.Record]],
        limits: Limits = DEFAULT_LIMITS,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        tls: Callable[[], ssl.SSLContext] | None = None,
        figures: ServingFigures | None = None,
        admits: Callable[[str], bool] = lambda token: True,
    ) -> None:
        self._tree = tree
        self._records = records
        self._limits = limits
        self._timeouts = timeouts
        self._tls = tls
        self._admits = admits
        self._listener: Listener | None = None
        # Threads that wait for records are not available for computing answers.
        self._lookups = ThreadPoolExecutor(MAX_CONNECTIONS)
        self._connections: set[asyncio.Task[None]] = set()
        self._peers: list[str] = []  # Addresses.
        self.figures = figures or ServingFigures()

    @asynccontextmanager
    async def listening(self, address: Address) -> AsyncIterator[Address]:
        """Listen until the block ends; yield the address with the actual port.

        For errors, see `connectors.sockets.listener.listen`.
        """
        self._listener = listen(*address, _MAX_HANDSHAKES)
        has_tls = self._tls is not None
        server = await asyncio.start_server(
            self._connected,
            sock=self._listener,
            ssl=None if self._tls is None else NewestContext(self._tls),
            ssl_handshake_timeout=self._timeouts.first_s if has_tls else None,
        )
        try:
            port = server.sockets[0].getsockname()[1]
            yield Address(address.host, port)
        finally:
            server.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connection = asyncio.current_task()
        assert connection is not None  # noqa: S101 - asyncio calls this as a task
        self._connections.add(connection)
        self.figures.connections += 1
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError) as error:
            self.figures.refused += 1
            why = str(error) or type(error).__name__
            _log.info("a peer's connection broke: %s", why)
        except asyncio.CancelledError:
            # Do not re-raise: asyncio would log a cancelled task as an error.
            pass
        finally:
            self._connections.discard(connection)
            writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        assert self._listener is not None  # noqa: S101 - it has accepted this
        is_open = self._admits("")
        stream = FrameStream(
            reader,
            writer,
            self._limits.frame_bytes,
            self._timeouts.step_s,
            None if is_open else _CREDENTIAL_BYTES,
        )
        # A broken TLS connection has no "peername".
        address, *_ = writer.get_extra_info("peername") or ("",)
        try:
            if not is_open:
                await self._check_token(stream)
            self._check_crowd(address)
        except SyncError as error:
            # Do not wait until the peer has read the refusal: each waiting connection
            # would keep memory in use.
            writer.write(bytes(self._refusal(error)))
            return
        self._listener.made(writer.transport)
        self._peers.append(address)
        try:
            async with asyncio.timeout(self._timeouts.session_s):
                await self._answer_all(stream)
        except SyncError as error:
            with suppress(OSError, TimeoutError):
                await stream.write([self._refusal(error)])
        finally:
            await stream.close()
            self._peers.remove(address)

    async def _check_token(self, stream: FrameStream) -> None:
        """Read the first frame; raise `Unauthorised` if it contains no valid token."""
        async with asyncio.timeout(self._timeouts.first_s):
            frame = await stream.read()
        if frame is None:
            raise ConnectionResetError("the peer sent no token")
        message = message_in(frame)
        token = message.token if isinstance(message, pb.Credential) else ""
        if not self._admits(token):
            raise Unauthorised

    def _check_crowd(self, address: str) -> None:
        if len(self._peers) >= MAX_CONNECTIONS:
            text = f"{MAX_CONNECTIONS} peers, the maximum, are already connected"
            raise LimitExceeded(text)
        if self._peers.count(address) >= MAX_PER_ADDRESS:
            text = (
                f"{MAX_PER_ADDRESS} peers, the maximum for each address, are already "
                "connected from this address"
            )
            raise LimitExceeded(text)

    async def _answer_all(self, stream: FrameStream) -> None:
        server: Server | None = None
        # The time limit is short, because a peer sends its first request at once.
        async with asyncio.timeout(self._timeouts.first_s):
            frame = await stream.read()
            if frame is not None and frame.kind is Kind.CREDENTIAL:
                frame = await stream.read()
        while frame is not None:
            if frame.kind is Kind.RECORDS_REQUEST:
                found = asyncio.get_running_loop().run_in_executor(
                    self._lookups, self._found, frame
                )
                await stream.write(await found)
            else:
                if frame.kind is Kind.OPEN:
                    check_fields(frame.body, _MAX_OPEN_FIELDS)
                if frame.kind in _OPENING:
                    server = self._opened(frame.kind)
                if server is None:
                    text = (
                        f"a message of type {frame.kind.name} arrived before a "
                        "synchronisation began"
                    )
                    raise BadFrame(text)
                # A thread computes the answer, because this takes a large part of a
                # second.
                await stream.write(await asyncio.to_thread(server.receive, frame))
                if isinstance(server, DocumentServer) and frame.kind in _OPENING:
                    self.figures.differing_roots += bool(server.client_differs)
            frame = await stream.read()

    def _found(self, frame: Frame) -> Iterable[Frame]:
        hashes = _hashes_in(frame)
        try:
            records = list(self._records(hashes))
        except Exception as error:
            # The peer does not get the error's text, which may name brokers.
            _log.warning("records for a peer cannot be read: %r", error)
            return [frame_of(pb.Refusal(reason="the peer cannot read its records now"))]
        return self._record_frames(records)

    def _opened(self, kind: Kind) -> Server:
        self.figures.sessions += 1
        tree = self._tree()
        if kind is Kind.OPEN:
            return BatchedServer(tree, self._limits)
        return DocumentServer(tree, self._limits)

    def _record_frames(self, records: Iterable[pb.Record]) -> Iterator[Frame]:
        """Yield records in frames of limited length; the last frame has no records."""
        answer = pb.RecordsResponse()
        size = 0
        for record in records:
            self.figures.records += 1
            length = record.ByteSize() + 16
            if answer.records and size + length > self._limits.frame_bytes // 4:
                yield frame_of(answer)
                answer, size = pb.RecordsResponse(), 0
            answer.records.append(record)
            size += length
        if answer.records:
            yield frame_of(answer)
        yield frame_of(pb.RecordsResponse())

    def _refusal(self, error: SyncError) -> Frame:
        self.figures.refused += 1
        _log.warning("a peer was refused: %s", error)
        return frame_of(pb.Refusal(reason=str(error)))


def _hashes_in(frame: Frame) -> list[bytes]:
    request = message_in(frame, _MAX_RECORDS * _REQUESTED_BYTES)
    assert isinstance(request, pb.RecordsRequest)  # noqa: S101 - by its kind
    hashes = list(request.message_hashes)
    if len(hashes) > _MAX_RECORDS:
        text = (
            f"{len(hashes)} records are requested, but at most {_MAX_RECORDS} are "
            "allowed"
        )
        raise LimitExceeded(text)
    for one in hashes:
        if len(one) != HASH_BYTES:
            text = f"a message hash must have {HASH_BYTES} bytes, not {len(one)}"
            raise BadFrame(text)
    return hashes
