"""A node of the simulated network, for one process."""

from __future__ import annotations

import asyncio
from typing import Self

from connectors.reliable_channel import Listener, QueryFailed, SendFailed, StoredPage
from connectors.reliable_channel.node import Unsubscribe
from examples.chat.network import CLUSTER, SHARDS
from examples.chat.wire import (
    Accepted,
    Answer,
    Delivery,
    Hello,
    Publish,
    Query,
    read_network,
    write,
)
from sds_core.reliable_channel import StoreRequest
from sds_core.waku import WakuMessage, autosharded_topic


class SimulatedNode:
    """A connection to the network; made by `connect`."""

    def __init__(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._name = name
        self._reader = reader
        self._writer = writer
        self._listener: Listener | None = None
        self._sent: dict[int, asyncio.Future[None]] = {}
        self._asked: dict[int, asyncio.Future[StoredPage]] = {}
        self._number = 0
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def connect(cls, name: str, port: int) -> Self:
        """Connect to the network on this machine.

        Raises:
            OSError: There is none on this port.
        """
        return cls(name, *await asyncio.open_connection("127.0.0.1", port))

    def pubsub_topic(self, content_topic: str) -> str:
        """Return the pubsub topic of the content topic's shard."""
        return autosharded_topic(content_topic, CLUSTER, SHARDS)

    async def subscribe(self, content_topic: str, listener: Listener) -> Unsubscribe:
        """Give a listener everything that arrives."""
        self._listener = listener
        write(self._writer, Hello(self._name, content_topic))
        listener.connection_changed(is_online=True, has_store=True)
        self._reading = asyncio.create_task(self._read())

        def unsubscribe() -> None:
            self._listener = None

        return unsubscribe

    async def send(self, message: WakuMessage) -> None:
        """Send a message.

        Raises:
            SendFailed: The network is gone.
        """
        self._number += 1
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sent[self._number] = accepted
        try:
            write(self._writer, Publish(self._number, message))
            await accepted
        except ConnectionError as error:
            raise SendFailed(str(error)) from error

    async def query(self, content_topic: str, request: StoreRequest) -> StoredPage:
        """Query the store for one page.

        Raises:
            QueryFailed: The network is gone.
        """
        answered: asyncio.Future[StoredPage] = (
            asyncio.get_running_loop().create_future()
        )
        self._asked[request.number] = answered
        try:
            write(self._writer, Query(request))
            return await answered
        except ConnectionError as error:
            raise QueryFailed(str(error)) from error

    async def close(self) -> None:
        """Leave the network."""
        self._writer.close()
        if self._reading is not None:
            await self._reading

    async def _read(self) -> None:
        try:
            while True:
                match await read_network(self._reader):
                    case Accepted(number):
                        self._sent.pop(number).set_result(None)
                    case Answer(page):
                        stored = StoredPage(page.messages, page.cursor)
                        self._asked.pop(page.number).set_result(stored)
                    case Delivery(arrived) if self._listener is not None:
                        self._listener.arrived(arrived.message, arrived.message_hash)
        except (asyncio.IncompleteReadError, ConnectionError):
            if self._listener is not None:
                self._listener.connection_changed(is_online=False, has_store=False)
            gone = ConnectionError("the network is gone")
            for sent in self._sent.values():
                sent.set_exception(gone)
            for asked in self._asked.values():
                asked.set_exception(gone)
