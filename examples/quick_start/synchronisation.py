"""A client finds what it lacks of a server's messages, and fetches it, over TCP."""

import asyncio
import os
from collections.abc import Iterable
from hashlib import sha256

from connectors.sync_tcp.address import Address
from connectors.sync_tcp.client import Peer
from connectors.sync_tcp.server import SyncServer
from sds_core.prolly.batched.client import BatchedClient
from sds_core.prolly.item import Item
from sds_core.prolly.proto.batched_sync_pb2 import Record
from sds_core.prolly.tree import ProllyTree

VALUES = {sha256(b"%d" % n).digest(): b"message %d" % n for n in range(1, 10_001)}
there = ProllyTree(Item(time_ns, key) for time_ns, key in enumerate(VALUES, 1))
here = there.changed(delete=list(there)[7_000:7_003])


def records(hashes: Iterable[bytes]) -> Iterable[Record]:
    """Return whole messages: of the server's database."""
    return [Record(message_hash=one, value=VALUES[one]) for one in hashes]


async def main() -> None:
    """Serve, and ask, in one process."""
    server = SyncServer(lambda: there, records)
    async with server.listening(Address("127.0.0.1", 0)) as address:
        peer = Peer(address)
        done = await peer.synchronise(BatchedClient(here, os.urandom))
        lacking = [one.message_hash for one in done.outcome.only_there]
        print(*(one.value.decode() for one in await peer.records(lacking)), sep=", ")


asyncio.run(main())
