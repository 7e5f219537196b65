"""The network: it loses and delays messages between the processes, and stores them.

python -m examples.chat.network --port 7011 --loss 0.1
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from contextlib import suppress
from pathlib import Path

import numpy as np

from examples.chat.record import Record
from examples.chat.wire import (
    Accepted,
    Answer,
    Delivery,
    Hello,
    Publish,
    Query,
    read_participant,
    write,
)
from sds_core.reliable_channel import Arrived
from sds_core.simulation.links import Links
from sds_core.simulation.reliable_network import SimulatedStore
from sds_core.simulation.scenario import Link
from sds_core.simulation.streams import Streams
from sds_core.waku import WakuMessage, autosharded_topic

PARTICIPANTS = 8
CLUSTER, SHARDS = 1, 8
HEARTBEAT_S = 5.0
"""Between two signs of life of the record: a longer silence is a hole."""


class Network:
    """All connections, and the links between them.

    Args:
        loss: Share of the transmissions that are lost, each for itself.
        seed: Seed of losses and delays.
        record: Gets everything that is sent; None to record nothing.
    """

    def __init__(self, loss: float, seed: int, record: Record | None = None) -> None:
        # The last receiver is the store.
        self._links = Links(
            Link(loss=loss), PARTICIPANTS, PARTICIPANTS + 1, Streams(seed), "chat"
        )
        self._everybody = np.arange(PARTICIPANTS + 1)
        self._index: dict[str, int] = {}
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._store = SimulatedStore()
        self._record = record
        self._begin_s = asyncio.get_running_loop().time()
        self._served: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one participant until it is gone."""
        task = asyncio.current_task()
        self._served[task] = writer
        try:
            await self._serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            del self._served[task]

    async def close(self) -> None:
        """Close all connections, and wait until nobody is served any more.

        asyncio would cancel the tasks instead, and report each as an error.
        """
        for writer in self._served.values():
            writer.close()
        await asyncio.gather(*filter(None, self._served), return_exceptions=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        hello = await read_participant(reader)
        if not isinstance(hello, Hello):
            return
        index = self._index.setdefault(hello.name, len(self._index))
        if index >= PARTICIPANTS:
            return
        self._writers[hello.name] = writer
        try:
            while True:
                match await read_participant(reader):
                    case Publish(number, message):
                        self._carry(hello.name, message)
                        write(writer, Accepted(number))
                    case Query(request):
                        page = self._store.page(request, hello.content_topic)
                        write(writer, Answer(page))
                        for arrived in page.messages:
                            self._reached(hello.name, arrived)
        finally:
            if self._writers.get(hello.name) is writer:
                del self._writers[hello.name]

    def _carry(self, sender: str, message: WakuMessage) -> None:
        topic = autosharded_topic(message.content_topic, CLUSTER, SHARDS)
        arrived = Arrived(message, message.hash_on(topic))
        if self._record is not None:
            self._record.sent(sender, message, topic)
        loop = asyncio.get_running_loop()
        elapsed_ms = int((loop.time() - self._begin_s) * 1000)
        arrives, delays_ms = self._links.carry(
            self._index[sender], self._everybody, elapsed_ms
        )
        if arrives[PARTICIPANTS]:
            self._store.put(message, arrived.message_hash)
        for name, index in self._index.items():
            if name != sender and arrives[index]:
                loop.call_later(
                    int(delays_ms[index]) / 1000, self._deliver, name, arrived
                )

    def _deliver(self, name: str, arrived: Arrived) -> None:
        # Who is not connected misses it.
        writer = self._writers.get(name)
        if writer is not None:
            write(writer, Delivery(arrived))
            self._reached(name, arrived)

    def _reached(self, name: str, arrived: Arrived) -> None:
        if self._record is not None:
            self._record.reached(name, arrived.message)


async def run(port: int, loss: float, seed: int, file: Path | None) -> None:
    """Serve until SIGTERM or SIGINT."""
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    record = None if file is None else Record(file)
    network = Network(loss, seed, record)
    server = await asyncio.start_server(network.serve, "127.0.0.1", port)
    bound = server.sockets[0].getsockname()[1]
    print(f"network on port {bound}, {loss:.0%} loss", flush=True)
    async with server:
        while not ending.is_set():
            if record is not None:
                record.heartbeat()
            with suppress(TimeoutError):
                await asyncio.wait_for(ending.wait(), HEARTBEAT_S)
        server.close()
        await network.close()
    if record is not None:
        record.close()


def main() -> None:
    """Run by the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7011, help="0 for a free one")
    parser.add_argument("--loss", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--record", type=Path, help="write everything that is sent to this file"
    )
    arguments = parser.parse_args()
    asyncio.run(run(arguments.port, arguments.loss, arguments.seed, arguments.record))


if __name__ == "__main__":
    main()
