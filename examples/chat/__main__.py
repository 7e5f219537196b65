"""One participant of the chat.

    python -m examples.chat alice --storage alice.sqlite

Each line of the input is a message; `/file PATH` sends a file.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from connectors.reliable_channel import create_reliable_channel
from connectors.storage.reliable_channel import SqliteChannelStorage
from examples.chat.node import SimulatedNode
from sds_core.reliable_channel import (
    EventName,
    MessageReceived,
    ReliableChannelOptions,
    RetrievalStrategy,
)

TOPIC = "/sds-chat/1/tea/proto"
_SHORT_BYTES = 1_000


def show(event: Any) -> None:
    """Print an event."""
    if isinstance(event, MessageReceived):
        payload = event.payload
        text = payload.decode(errors="replace")
        if len(payload) > _SHORT_BYTES:
            text = f"{len(payload):,} bytes, SHA-256 {sha256(payload).hexdigest()}"
        print(f"{event.sender_id}: {text}", flush=True)
        return
    info = getattr(event, "chunk_info", None)
    progress = f" {len(info.chunks)}/{info.total_chunks}" if info else ""
    message_id = getattr(event, "message_id", "")[:8]
    print(f"  [{event.name} {message_id}{progress}]", flush=True)


def options_of(
    pace: int, retries: int, retrieval: RetrievalStrategy
) -> ReliableChannelOptions:
    """Return the document's options with other intervals and ways of repair.

    Args:
        pace: Divides the intervals.
        retries: Most retries of a chunk.
        retrieval: How missing messages are had.
    """
    given = ReliableChannelOptions()
    profile = replace(
        given.profile,
        t_min_ms=given.profile.t_min_ms // pace,
        t_max_ms=given.profile.t_max_ms // pace,
        repair_sweep_ms=given.profile.repair_sweep_ms // pace,
    )
    return replace(
        given,
        auto_start=False,
        sync_min_interval_ms=given.sync_min_interval_ms // pace,
        retry_interval_ms=given.retry_interval_ms // pace,
        max_retry_attempts=retries,
        retrieve_frequency_ms=given.retrieve_frequency_ms // pace,
        process_task_min_elapse_ms=given.process_task_min_elapse_ms // pace,
        query_on_connect=retrieval.uses_store,
        retrieval=retrieval,
        profile=profile,
    )


async def chat(
    name: str, port: int, storage: SqliteChannelStorage, options: ReliableChannelOptions
) -> None:
    """Send the lines of the input, and print what arrives, until the input ends."""
    node = await SimulatedNode.connect(name, port)
    channel = await create_reliable_channel(
        node, "tea", name, TOPIC, options, storage=storage
    )
    for event in EventName:
        channel.on(event, show)
    await channel.start()
    print(f"{name} is in the channel", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        text = line.rstrip("\n")
        if text.startswith("/file "):
            channel.send(Path(text.removeprefix("/file ")).read_bytes())
        elif text:
            channel.send(text.encode())
    await channel.stop()
    await node.close()


def main() -> None:
    """Run by the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--port", type=int, default=7011)
    parser.add_argument("--storage", type=Path, required=True)
    parser.add_argument(
        "--pace", type=int, default=5, help="divides the document's intervals"
    )
    parser.add_argument(
        "--retries",
        type=int,
        default=ReliableChannelOptions().max_retry_attempts,
        help="most retries of a chunk",
    )
    parser.add_argument(
        "--retrieval",
        type=RetrievalStrategy,
        choices=list(RetrievalStrategy),
        default=RetrievalStrategy.BOTH,
        help="how missing messages are had",
    )
    arguments = parser.parse_args()
    options = options_of(arguments.pace, arguments.retries, arguments.retrieval)
    with SqliteChannelStorage(arguments.storage) as storage:
        asyncio.run(chat(arguments.name, arguments.port, storage, options))


if __name__ == "__main__":
    main()
