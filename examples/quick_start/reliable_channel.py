"""Two reliable channels on a Waku node in memory."""

import asyncio

from connectors.reliable_channel import MemoryNode, create_reliable_channel

TOPIC = "/kettle/1/tea/proto"


async def main() -> None:
    """Send a message, and wait until it is acknowledged."""
    node = MemoryNode()  # here: a RestNode, or a node of your own
    alice = await create_reliable_channel(node, "tea", "alice", TOPIC)
    bob = await create_reliable_channel(node, "tea", "bob", TOPIC)

    acknowledged = asyncio.Event()
    alice.on("message-acknowledged", lambda _: acknowledged.set())
    bob.on("message-received", lambda event: print("bob:", event.payload.decode()))
    bob.on("message-received", lambda _: bob.send(b"Coming."))

    alice.send(b"The kettle is on.")
    await acknowledged.wait()
    print("alice: bob has it")
    await alice.stop()
    await bob.stop()


asyncio.run(main())
