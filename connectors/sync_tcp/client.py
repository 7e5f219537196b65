"""Synchronises with a peer, and reconnects if a connection breaks."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar, cast

from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential_jitter,
)

from connectors.sync_tcp.address import Address, PeerUnreachable
from connectors.sync_tcp.fields import check_fields
from connectors.sync_tcp.stream import DEFAULT_TIMEOUTS, FrameStream, Timeouts
from sds_core.prolly.errors import BrokenFrame, LimitExceeded, UnexpectedMessage
from sds_core.prolly.frames import Frame, Kind, frame_of, message_in
from sds_core.prolly.outcome import DEFAULT_LIMITS, Client, Limits, Outcome
from sds_core.prolly.proto import batched_sync_pb2 as pb

ATTEMPTS = 5
"""Maximum number of connections for one call of `synchronise` or `records`.

After a connection breaks, the next connection continues with the results so far.
"""

RECORDS_PER_REQUEST = 500

_MAX_FIELDS = 200 * RECORDS_PER_REQUEST
"""Maximum number of records, and of their headers and other fields, in one frame."""

_RECORDS = pb.RecordsResponse.RECORDS_FIELD_NUMBER

_LONGEST_RETRY_S = 5.0

_Result = TypeVar("_Result")


class Synchronised(NamedTuple):
    """The result of a synchronisation, and its total cost on all its connections.

    `rounds` counts how often this side waited for an answer.
    """

    outcome: Outcome
    rounds: int
    sent_bytes: int
    received_bytes: int


class Peer:
    """A peer to synchronise with; `limits` and `timeouts` apply to its answers.

    If `tls` is None, connections have no TLS. Methods raise `PeerUnreachable` if every
    connection breaks, and `SyncError` if the peer refuses a request or violates the
    protocol.
    """

    def __init__(
        self,
        address: Address,
        limits: Limits = DEFAULT_LIMITS,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        self._address = address
        self._tls = tls
        self._token = token
        self._limits = limits
        self._timeouts = timeouts

    async def synchronise(self, client: Client) -> Synchronised:
        """Exchange frames between `client` and the peer until the outcome is known."""
        rounds = sent = received = 0

        async def attempt() -> Outcome:
            nonlocal rounds, sent, received
            async with self._connected() as stream:
                try:
                    frames: Sequence[Frame] = client.start()
                    while client.outcome is None:
                        if frames:
                            await stream.write(frames)
                            rounds += 1
                        frames = client.receive(await _answer(stream))
                finally:
                    sent += stream.sent_bytes
                    received += stream.received_bytes
            return client.outcome

        outcome = await self._persist(attempt)
        return Synchronised(outcome, rounds, sent, received)

    async def records(self, message_hashes: Sequence[bytes]) -> list[pb.Record]:
        """Request complete records; return those that the peer still has."""
        found: dict[bytes, pb.Record] = {}
        # A hash is removed when the peer has answered its request, even if the peer
        # lacks the record. A new connection therefore does not request it again.
        wanted = list(dict.fromkeys(message_hashes))
        size_bytes = 0

        async def attempt() -> None:
            nonlocal size_bytes
            # The last connection may have broken within an answer.
            wanted[:] = [one for one in wanted if one not in found]
            async with self._connected() as stream:
                while wanted:
                    part = wanted[:RECORDS_PER_REQUEST]
                    request = pb.RecordsRequest(message_hashes=part)
                    await stream.write([frame_of(request)])
                    # An answer consists of several frames, the last without records.
                    missing = set(part)
                    while records := await _records(stream):
                        for record in records:
                            if record.message_hash not in missing:
                                text = (
                                    "the peer sent a record twice, or a record that "
                                    "was not requested"
                                )
                                raise UnexpectedMessage(text)
                            missing.discard(record.message_hash)
                            found[record.message_hash] = record
                            size_bytes += record.ByteSize()
                        self._check_size(size_bytes)
                    del wanted[: len(part)]

        await self._persist(attempt)
        return [found[one] for one in dict.fromkeys(message_hashes) if one in found]

    def _check_size(self, size_bytes: int) -> None:
        limit = self._limits.records_bytes
        if size_bytes > limit:
            text = (
                f"the records have more than {limit} bytes in total: request fewer "
                "records at once"
            )
            raise LimitExceeded(text)

    async def _persist(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type((OSError, TimeoutError, _Ended)),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential_jitter(
                multiplier=self._timeouts.retry_s,
                max=_LONGEST_RETRY_S,
                jitter=self._timeouts.retry_s,
            ),
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except (OSError, TimeoutError, _Ended) as error:
            detail = str(error) or type(error).__name__
            raise PeerUnreachable(self._address, detail) from error

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[FrameStream]:
        times = self._timeouts
        async with asyncio.timeout(times.session_s):
            async with asyncio.timeout(times.connect_s):
                reader, writer = await asyncio.open_connection(
                    *self._address, ssl=self._tls
                )
            stream = FrameStream(reader, writer, self._limits.frame_bytes, times.step_s)
            try:
                if self._token is not None:
                    await stream.write([frame_of(pb.Credential(token=self._token))])
                yield stream
            finally:
                await stream.close()


class _Ended(Exception):
    """The peer ended the connection."""


async def _answer(stream: FrameStream) -> Frame:
    try:
        frame = await stream.read()
    except BrokenFrame as error:
        raise _Ended(str(error)) from error
    if frame is None:
        raise _Ended("the connection ended")
    return frame


async def _records(stream: FrameStream) -> Sequence[pb.Record]:
    frame = await _answer(stream)
    if frame.kind is Kind.RECORDS_RESPONSE:
        check_fields(frame.body, _MAX_FIELDS, nested=_RECORDS)
    message = message_in(frame, expected=(Kind.RECORDS_RESPONSE, Kind.REFUSAL))
    return cast("pb.RecordsResponse", message).records
