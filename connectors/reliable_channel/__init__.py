"""Reliable channels for asyncio applications, on any Waku node."""

from connectors.reliable_channel.channel import (
    ReliableChannel,
    create_reliable_channel,
)
from connectors.reliable_channel.memory import MemoryNode
from connectors.reliable_channel.node import (
    Listener,
    QueryFailed,
    SendFailed,
    StoredPage,
    WakuNode,
)

__all__ = [
    "Listener",
    "MemoryNode",
    "QueryFailed",
    "ReliableChannel",
    "SendFailed",
    "StoredPage",
    "WakuNode",
    "create_reliable_channel",
]
