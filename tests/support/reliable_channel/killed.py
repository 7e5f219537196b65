"""A participant in a process of its own, which a test kills.

    python -m tests.support.reliable_channel.killed <file> <node's URL> <first> <count>

It sends numbered messages as quickly as it can, and prints the number of each as soon
as `send` has returned.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from connectors.reliable_channel import create_reliable_channel
from connectors.storage.reliable_channel import SqliteChannelStorage
from connectors.waku_rest.channel_node import RestNode
from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.connection import NodeSettings, open_client
from tests.support.reliable_channel import CHANNEL, OPTIONS, TOPIC

SENDER = "alice"

QUICK = replace(
    OPTIONS,
    sync_min_interval_ms=400,
    retry_interval_ms=500,
    retrieve_frequency_ms=200,
    process_task_min_elapse_ms=10,
)


async def speak(path: Path, url: str, first: int, count: int) -> None:
    """Send so many messages, then stay until killed."""
    with SqliteChannelStorage(path) as storage:
        async with open_client(NodeSettings(url)) as http:
            client = NodeClient(url, http)
            node = RestNode(client, client, poll_s=0.05)
            channel = await create_reliable_channel(
                node, CHANNEL, SENDER, TOPIC, QUICK, storage=storage
            )
            for number in range(first, first + count):
                channel.send(b"%d" % number)
                print(number, flush=True)
                await asyncio.sleep(0.01)
            await asyncio.Event().wait()


def main() -> None:
    """Run by the arguments."""
    file, url, first, count = sys.argv[1:]
    asyncio.run(speak(Path(file), url, int(first), int(count)))


if __name__ == "__main__":
    main()
