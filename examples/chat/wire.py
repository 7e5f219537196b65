"""What participants and the simulated network say to each other, over TCP.

Each value is MessagePack after its length in four bytes.
"""

from __future__ import annotations

import asyncio

import msgspec

from sds_core.reliable_channel import Arrived, StoreAnswered, StoreRequest
from sds_core.waku import WakuMessage

_LENGTH_BYTES = 4


class Hello(msgspec.Struct, tag=True, frozen=True):
    """A participant connects."""

    name: str
    content_topic: str


class Publish(msgspec.Struct, tag=True, frozen=True):
    """A participant sends a message; `Accepted` answers it."""

    number: int
    message: WakuMessage


class Query(msgspec.Struct, tag=True, frozen=True):
    """A participant queries the store; `Answer` answers it."""

    request: StoreRequest


class Accepted(msgspec.Struct, tag=True, frozen=True):
    """The network took a message."""

    number: int


class Delivery(msgspec.Struct, tag=True, frozen=True):
    """A message for a participant."""

    arrived: Arrived


class Answer(msgspec.Struct, tag=True, frozen=True):
    """A page of the store."""

    page: StoreAnswered


FromParticipant = Hello | Publish | Query
FromNetwork = Accepted | Delivery | Answer

_from_participant: msgspec.msgpack.Decoder[FromParticipant] = msgspec.msgpack.Decoder(
    FromParticipant
)
_from_network: msgspec.msgpack.Decoder[FromNetwork] = msgspec.msgpack.Decoder(
    FromNetwork
)


def write(writer: asyncio.StreamWriter, value: FromParticipant | FromNetwork) -> None:
    """Write one value."""
    packed = msgspec.msgpack.encode(value)
    writer.write(len(packed).to_bytes(_LENGTH_BYTES, "big") + packed)


async def read_participant(reader: asyncio.StreamReader) -> FromParticipant:
    """Read one value of a participant.

    Raises:
        asyncio.IncompleteReadError: The connection is closed.
    """
    return _from_participant.decode(await _packed(reader))


async def read_network(reader: asyncio.StreamReader) -> FromNetwork:
    """Read one value of the network.

    Raises:
        asyncio.IncompleteReadError: The connection is closed.
    """
    return _from_network.decode(await _packed(reader))


async def _packed(reader: asyncio.StreamReader) -> bytes:
    length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
    return await reader.readexactly(length)
