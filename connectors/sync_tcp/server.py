"""Answers peers: synchronisations of both protocols, and whole records.

A peer that does not follow the protocol, or is too slow, loses its connection; nobody
else notices.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from connectors.sync_tcp.address import Address, ListenFailed
from connectors.sync_tcp.stream import DEFAULT_TIMEOUTS, FrameStream, Timeouts
from sds_core.prolly.batched.server import BatchedServer
from sds_core.prolly.document import DocumentServer
from sds_core.prolly.errors import BadFrame, LimitExceeded, SyncError
from sds_core.prolly.frames import Frame, Kind, frame_of, message_in
from sds_core.prolly.item import HASH_BYTES
from sds_core.prolly.outcome import DEFAULT_LIMITS, Limits, Server
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree

_log = logging.getLogger("sds-monitor")

MAX_CONNECTIONS = 16
"""Peers at the same time; one more is refused."""

_MAX_RECORDS = 1_000
"""Records that one request may ask for."""

_OPENING = {Kind.OPEN, Kind.EXCHANGE_ROOT_REQUEST}


@dataclass(slots=True)
class ServerFigures:
    """What a server has done.

    Attributes:
        connections: Connections in all.
        refused: Connections that ended by a fault of the peer, or one too many.
        sessions: Synchronisations that began.
        differing_roots: Of those by the document's protocol, how many showed that this
            side does not have the same messages.
        records: Records that were sent.
    """

    connections: int = 0
    refused: int = 0
    sessions: int = 0
    differing_roots: int = 0
    records: int = 0


class SyncServer:
    """Serves one side's messages.

    Args:
        tree: Returns the tree now; called at the begin of each synchronisation, which
            keeps the tree to its end.
        records: Returns records by message hash; called in a thread.
        limits: What peers may ask for.
        timeouts: How long to wait for peers.
    """

    def __init__(
        self,
        tree: Callable[[], ProllyTree],
        records: Callable[[Sequence[bytes]], Iterable[pb.Record]],
        limits: Limits = DEFAULT_LIMITS,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._tree = tree
        self._records = records
        self._limits = limits
        self._timeouts = timeouts
        self._sessions: set[asyncio.Task[None]] = set()
        self.figures = ServerFigures()

    @asynccontextmanager
    async def listening(self, address: Address) -> AsyncIterator[Address]:
        """Listen until the block ends; yields the address with its real port.

        Raises:
            ListenFailed: The address cannot be used.
        """
        try:
            server = await asyncio.start_server(self._connected, *address)
        except OSError as error:
            detail = error.strerror or str(error)
            raise ListenFailed(address, detail) from error
        try:
            port = server.sockets[0].getsockname()[1]
            yield Address(address.host, port)
        finally:
            server.close()
            for session in self._sessions:
                session.cancel()
            await asyncio.gather(*self._sessions, return_exceptions=True)

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # asyncio would report a cancelled session as an error.
        with suppress(asyncio.CancelledError):
            await self._serve(reader, writer)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        stream = FrameStream(
            reader, writer, self._limits.frame_bytes, self._timeouts.step_s
        )
        self.figures.connections += 1
        session = asyncio.current_task()
        assert session is not None  # noqa: S101 - asyncio calls this as a task
        self._sessions.add(session)
        try:
            if len(self._sessions) > MAX_CONNECTIONS:
                text = f"{MAX_CONNECTIONS} peers are connected already"
                raise LimitExceeded(text)
            async with asyncio.timeout(self._timeouts.session_s):
                await self._answer_all(stream)
        except SyncError as error:
            await self._refuse(stream, error)
        except (OSError, TimeoutError) as error:
            self.figures.refused += 1
            _log.info("a peer's connection broke: %s", error or type(error).__name__)
        finally:
            await stream.close()
            self._sessions.discard(session)

    async def _answer_all(self, stream: FrameStream) -> None:
        server: Server | None = None
        while (frame := await stream.read()) is not None:
            if frame.kind is Kind.RECORDS_REQUEST:
                found = await asyncio.to_thread(self._records, _hashes_in(frame))
                await stream.write(self._record_frames(found))
                continue
            if frame.kind in _OPENING:
                server = self._opened(frame.kind)
            if server is None:
                text = f"{frame.kind.name} before a synchronisation was opened"
                raise BadFrame(text)
            await stream.write(server.receive(frame))
            if isinstance(server, DocumentServer) and frame.kind in _OPENING:
                self.figures.differing_roots += bool(server.client_differs)

    def _opened(self, kind: Kind) -> Server:
        self.figures.sessions += 1
        tree = self._tree()
        if kind is Kind.OPEN:
            return BatchedServer(tree, self._limits)
        return DocumentServer(tree, self._limits)

    def _record_frames(self, records: Iterable[pb.Record]) -> Iterator[Frame]:
        """Yield records in frames of limited length, and an empty one at the end."""
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

    async def _refuse(self, stream: FrameStream, error: SyncError) -> None:
        self.figures.refused += 1
        _log.warning("a peer was refused: %s", error)
        try:
            await stream.write([frame_of(pb.Refusal(reason=str(error)))])
        except (OSError, TimeoutError):
            return


def _hashes_in(frame: Frame) -> list[bytes]:
    request = message_in(frame)
    assert isinstance(request, pb.RecordsRequest)  # noqa: S101 - by its kind
    hashes = list(request.message_hashes)
    if len(hashes) > _MAX_RECORDS:
        text = f"{len(hashes)} records at once; at most {_MAX_RECORDS}"
        raise LimitExceeded(text)
    if any(len(one) != HASH_BYTES for one in hashes):
        text = f"a message hash has {HASH_BYTES} bytes"
        raise BadFrame(text)
    return hashes
