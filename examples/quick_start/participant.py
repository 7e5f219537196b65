"""Two SDS participants, each in a driver that owns its clock and timer."""

import asyncio
from random import Random

from connectors.event_loop.driver import ChannelDriver, unix_ms
from sds_core.message_channel import Broadcast, Delivered, Event, MessageChannel

drivers: dict[str, ChannelDriver] = {}


def join(name: str) -> ChannelDriver:
    """Return the driver of a participant of the channel."""
    channel = MessageChannel("tea", name, now_ms=unix_ms(), random=Random())

    async def broadcast(frame: Broadcast) -> None:
        for other in set(drivers) - {name}:  # here: over your transport
            await drivers[other].receive(frame.value)

    def show(event: Event) -> None:
        if isinstance(event, Delivered):
            print(f"{name}: {event.sender_id} says {event.content.decode()}")

    return ChannelDriver(channel, broadcast=broadcast, on_event=show)


async def main() -> None:
    """Send a message and an answer."""
    drivers.update({name: join(name) for name in ("alice", "bob")})
    async with drivers["alice"] as alice, drivers["bob"] as bob:
        await alice.send(b"The kettle is on.")
        await bob.send(b"Coming.")


asyncio.run(main())
