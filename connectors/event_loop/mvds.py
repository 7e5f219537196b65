"""Runs an MVDS node in asyncio: starts its epochs, and sets its messages' timestamps.

async with NodeDriver(node, send=…, on_event=…, storage=…) as driver:
    driver.append(group_id, b"The kettle is on.")
    …                                   # and driver.receive(…) for each payload
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from connectors.event_loop.driver import Driver, pass_on
from sds_core.mvds.changes import Storage
from sds_core.mvds.events import Event
from sds_core.mvds.node import Node
from sds_core.mvds.node_errors import MessageExists
from sds_core.mvds.options import Mode
from sds_core.mvds.payload import decode, encode

_log = logging.getLogger("sds-monitor")


def unix_s() -> int:
    """Return the time, Unix s; deployed MVDS nodes use this unit in timestamps."""
    return time.time_ns() // 1_000_000_000


class NodeDriver(Driver):
    """Calls a node in each epoch, and passes on the node's results.

    After each call of the node, the driver first stores the changes of the node. Then
    the application gets the events, and the transport sends the payloads. Payloads to
    different peers are sent in parallel.

    A payload is lost if the transport raises an error or takes longer than
    `send_timeout_s`. A payload is also lost if the previous payload to the same peer is
    still being sent. The node resends the records of a lost payload, except ephemeral
    messages and acknowledgements. After a lost acknowledgement, the peer resends the
    message, and the node acknowledges the message again.

    Args:
        node: The node; other code may only read it and change its groups.
        send: Sends the bytes of one payload to a peer.
        on_event: Takes one event. If `on_event` raises an error, the driver first
            passes on the other events. If this happens during a call of the driver,
            this call then raises the error. At the start of an epoch, the error ends
            the driver (see `wait_closed`).
        storage: Stores the changes of the node. None: the node is not stored. If the
            storage raises an error, all later calls of the driver raise
            `driver.NotStored`.
        epoch_s: Length of an epoch, s.
        send_timeout_s: Time limit of each call of `send`, s.
        clock_s: Returns the time, Unix s.
        sleep: Waits for the number of seconds that it is given.
    """

    def __init__(
        self,
        node: Node,
        *,
        send: Callable[[bytes, bytes], Awaitable[None]],
        on_event: Callable[[Event], None] = lambda _: None,
        storage: Storage | None = None,
        epoch_s: float = 1.0,
        send_timeout_s: float = 60.0,
        clock_s: Callable[[], int] = unix_s,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._participant = node
        self._send = send
        self._on_event = on_event
        self._storage = storage
        self._epoch_s = epoch_s
        self._send_timeout_s = send_timeout_s
        self._clock_s = clock_s
        self._sleep = sleep
        self._sending: dict[bytes, asyncio.Task[None]] = {}
        if storage is not None:
            node.record_changes()

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [*self._sending.values(), *super()._tasks()]

    def _close(self) -> None:
        self._store()

    def append(
        self,
        group_id: bytes,
        body: bytes,
        *,
        mode: Mode | None = None,
        ephemeral: bool = False,
    ) -> bytes:
        """Send a message to all peers of a group, starting in the next epoch.

        The timestamp of the message is the current time, Unix s. If the group already
        has a message with this timestamp and body, the two messages would have the same
        id. In this case, the message gets the next free second as its timestamp.

        Returns:
            The message's id. `on_event` gets events of the message only after this
            call.

        Raises:
            UnknownGroup: The node is not in the group.
            MessageTooLarge: The message is longer than `Options.max_message_bytes`.
        """
        timestamp = self._clock_s()
        while True:
            try:
                message_id = self._node.append(
                    group_id, body, timestamp, mode=mode, ephemeral=ephemeral
                )
            except MessageExists:
                timestamp += 1
            else:
                self._store()
                return message_id

    def receive(self, sender: bytes, value: bytes) -> None:
        """Process a payload; the transport must have authenticated the sender.

        Raises:
            NotAPayload: The bytes are not a payload.
            ValueTooLarge: The payload has too many bytes.
        """
        self._take(self._node.receive(sender, decode(value)))

    async def _run(self) -> None:
        while True:
            step = self._node.tick()
            self._take(step.events)
            for peer, payload in step.payloads.items():
                if peer not in self._sending:
                    self._begin(peer, encode(payload))
            await self._sleep(self._epoch_s)

    def _begin(self, peer: bytes, value: bytes) -> None:
        task = asyncio.create_task(self._deliver(peer, value))
        self._sending[peer] = task
        task.add_done_callback(lambda _: self._sending.pop(peer))

    async def _deliver(self, peer: bytes, value: bytes) -> None:
        try:
            async with asyncio.timeout(self._send_timeout_s):
                await self._send(peer, value)
        except Exception as error:
            # An error of the transport, for example an unreachable peer, must not end
            # the driver.
            mistake = None if isinstance(error, OSError) else error
            _log.warning(
                "a payload for peer %r is lost: %r", peer, error, exc_info=mistake
            )

    def _take(self, events: Iterable[Event]) -> None:
        self._store()
        pass_on(events, self._on_event)

    @property
    def _node(self) -> Node:
        self._check()
        return self._participant

    def _store(self) -> None:
        if self._storage is not None:
            changes = self._node.take_changes()
            if changes is not None:
                self._keep(partial(self._storage.store, changes))
