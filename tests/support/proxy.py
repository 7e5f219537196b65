"""A network between client and broker that is slow, loses connections, or falls silent.

It is a relay on loopback in a thread of this process. It changes how bytes travel, and
none of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Flag, auto

_CHUNK_BYTES = 64 * 1024


class Direction(Flag):
    """Ways of a connection."""

    NONE = 0
    TO_BROKER = auto()
    TO_CLIENT = auto()
    BOTH = TO_BROKER | TO_CLIENT


@dataclass
class Network:
    """How bytes travel now; may be changed at any time.

    Attributes:
        port: Where clients connect.
        delay_s: Time on the way, in each direction.
        silent: Ways on which nothing arrives any more; connections stay open, and new
            ones are accepted.
        cut_after_bytes: A connection ends after so many bytes to the client; None for
            never.
        most_cuts: Number of connections after which none ends so; None for no limit.
        cuts: Number of connections that ended so.
    """

    port: int
    delay_s: float = 0.0
    silent: Direction = Direction.NONE
    cut_after_bytes: int | None = None
    most_cuts: int | None = None
    cuts: int = 0

    async def relay(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        way: Direction,
    ) -> None:
        """Carry bytes one way until a side ends."""
        carried = 0
        while chunk := await reader.read(_CHUNK_BYTES):
            await asyncio.sleep(self.delay_s)
            # What is lost is sent again by TCP once the way is free.
            while way in self.silent:
                await asyncio.sleep(0.05)
            carried += len(chunk)
            limit = self.cut_after_bytes
            if self.cuts == self.most_cuts:
                limit = None
            if way is Direction.TO_CLIENT and limit is not None and carried > limit:
                self.cuts += 1
                writer.transport.abort()
                return
            writer.write(chunk)
            await writer.drain()

    async def serve(
        self,
        target: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Connect a client with the broker."""
        with suppress(OSError):
            to_broker, from_broker = await asyncio.open_connection("127.0.0.1", target)
            ways = (
                self.relay(reader, from_broker, Direction.TO_BROKER),
                self.relay(to_broker, writer, Direction.TO_CLIENT),
            )
            tasks = [asyncio.create_task(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            from_broker.close()
            with suppress(OSError):
                await from_broker.wait_closed()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@contextmanager
def network(port: int, target: int) -> Iterator[Network]:
    """Carry connections of a port to another one while the block runs."""
    between = Network(port)
    begun, ending = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()
    connections: set[asyncio.Task[None]] = set()

    async def carry() -> None:
        async def connected(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            serving = asyncio.create_task(between.serve(target, reader, writer))
            connections.add(serving)
            serving.add_done_callback(connections.discard)
            await asyncio.shield(serving)

        async with await asyncio.start_server(connected, "127.0.0.1", port):
            begun.set()
            await ending.wait()
            # Connections that clients have ended close their sockets first.
            if connections:
                await asyncio.wait(connections, timeout=1)

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(carry())

    thread = threading.Thread(target=run, name="network")
    thread.start()
    try:
        assert begun.wait(10)
        yield between
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join()
