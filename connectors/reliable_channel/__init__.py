"""Reliable channels for asyncio applications, on any Waku node."""

from connectors.reliable_channel.channel import ReliableChannel as ReliableChannel
from connectors.reliable_channel.channel import (
    create_reliable_channel as create_reliable_channel,
)
from connectors.reliable_channel.memory import MemoryNode as MemoryNode
from connectors.reliable_channel.node import Listener as Listener
from connectors.reliable_channel.node import QueryFailed as QueryFailed
from connectors.reliable_channel.node import SendFailed as SendFailed
from connectors.reliable_channel.node import StoredPage as StoredPage
from connectors.reliable_channel.node import WakuNode as WakuNode
