"""Two MVDS nodes, each in a driver that owns its epochs and timestamps."""

import asyncio

from connectors.event_loop.mvds import NodeDriver
from sds_core.mvds.events import Acknowledged, Event
from sds_core.mvds.node import Node

GROUP = bytes(32)
drivers: dict[bytes, NodeDriver] = {}


def join(name: bytes, peer: bytes, on_event: asyncio.Queue[Event]) -> NodeDriver:
    """Return the driver of a node that is in a group with one peer."""
    node = Node(name)
    node.add_group(GROUP, [peer])

    async def send(receiver: bytes, payload: bytes) -> None:
        drivers[receiver].receive(name, payload)  # here: over your transport

    return NodeDriver(node, send=send, on_event=on_event.put_nowait, epoch_s=0.1)


async def main() -> None:
    """Send a message, and print what happens until it is acknowledged."""
    events: asyncio.Queue[Event] = asyncio.Queue()
    drivers[b"alice"] = join(b"alice", b"bob", events)
    drivers[b"bob"] = join(b"bob", b"alice", events)
    async with drivers[b"alice"] as alice, drivers[b"bob"]:
        alice.append(GROUP, b"The kettle is on.")
        event = None
        while not isinstance(event, Acknowledged):
            event = await events.get()
            print(type(event).__name__)


asyncio.run(main())
