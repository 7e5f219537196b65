"""Sends and receives frames on one connection, with limits of size and time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from sds_core.prolly.errors import BrokenFrame
from sds_core.prolly.frames import Frame, FrameReader

_READ_BYTES = 64 * 1024


class Timeouts(NamedTuple):
    """Time limits and waits, in seconds.

    Attributes:
        connect_s: Limit for opening a connection.
        first_s: Limit of a server for each of these: a client's TLS handshake, token,
            and first request.
        step_s: Limit for each wait until the other side sends further bytes or receives
            a frame.
        session_s: Limit for a whole connection.
        retry_s: Wait before the second connection. Each further wait is twice as long.
            A random time of at most `retry_s` is added to each wait. In total, a wait
            is at most 5 s.
    """

    connect_s: float = 10.0
    first_s: float = 5.0
    step_s: float = 30.0
    session_s: float = 600.0
    retry_s: float = 0.2


DEFAULT_TIMEOUTS = Timeouts()


class FrameStream:
    """Reads and writes the frames of one connection; counts bytes.

    `frame_bytes` is the maximum length of a frame. If `first_bytes` is given, it is the
    maximum length of the first received frame. For `step_s`, see `Timeouts`.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        frame_bytes: int,
        step_s: float,
        first_bytes: int | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = FrameReader(frame_bytes, first_bytes)
        self._read: deque[Frame] = deque()
        self._step_s = step_s
        self.sent_bytes = 0
        self.received_bytes = 0

    async def read(self) -> Frame | None:
        """Return the next frame; None after an orderly end of the connection.

        Raises:
            SyncError: The received bytes are not frames, or end within a frame.
            TimeoutError: No further bytes arrived within `step_s`.
            OSError: The connection broke.
        """
        while not self._read:
            async with asyncio.timeout(self._step_s):
                data = await self._reader.read(_READ_BYTES)
            if not data:
                if self._frames.is_between_frames:
                    return None
                raise BrokenFrame("the connection ended within a frame")
            self.received_bytes += len(data)
            self._read.extend(self._frames.feed(data))
        return self._read.popleft()

    async def write(self, frames: Iterable[Frame]) -> None:
        """Send frames.

        A thread takes a frame from `frames` only when few earlier bytes are still
        unsent.

        Raises:
            TimeoutError: The peer did not receive a frame within `step_s`.
            OSError: The connection broke.
        """
        making = iter(frames)
        while (frame := await asyncio.to_thread(next, making, None)) is not None:
            data = bytes(frame)
            self._writer.write(data)
            self.sent_bytes += len(data)
            async with asyncio.timeout(self._step_s):
                await self._writer.drain()

    async def close(self) -> None:
        """Close the connection; drop data that the peer does not receive in time."""
        self._writer.close()
        try:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(self._step_s):
                    await self._writer.wait_closed()
        finally:
            # Without the abort, unsent bytes would stay in memory if the peer does not
            # read them.
            self._writer.transport.abort()
