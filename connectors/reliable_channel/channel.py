"""The reliable channel of RELIABLE-CHANNEL-API, on asyncio.

Functions have the names of the document in snake case. Events have the document's names
unchanged. All calls run in one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from math import inf
from random import Random, SystemRandom
from typing import Any

from connectors.reliable_channel.calls import NodeCalls, Subscription
from connectors.reliable_channel.node import WakuNode
from sds_core.message_channel import SyncStatus
from sds_core.reliable_channel import (
    LIP_173_NAMES,
    Advance,
    Arrived,
    ConnectionChanged,
    Encryption,
    Event,
    EventName,
    Input,
    MessageIdRefused,
    NotStarted,
    Output,
    ReliableChannelCore,
    ReliableChannelOptions,
    Restarted,
    Send,
    SendEphemeral,
    Start,
    Stop,
)
from sds_core.reliable_channel.journal import ChannelStorage, StoredChannel
from sds_core.waku import WakuMessage
from sds_core.wire import HistoryEntry

_log = logging.getLogger("sds-monitor")

_NS_PER_MS = 1_000_000

NODE_TIMEOUT_S = 60.0
"""Default time limit of a call to the node. Retries and other queries wait until the
call ends."""

STOP_WAIT_S = 5.0
"""Default time limit of `stop`. The network returns most accepted messages within two
seconds."""

Handler = Callable[[Any], object]
"""Receives an event in the event loop; the handler must not block the loop."""

_PUBLISHED = {published: name for name, published in LIP_173_NAMES.items()}


def _event_name(name: str) -> EventName:
    return _PUBLISHED.get(name) or EventName(name)


class SteadyClock:
    """Unix time that never decreases.

    While the system's clock is earlier than this time, the monotonic clock advances
    this time.
    """

    def __init__(self) -> None:
        self._last_ms = 0
        self._last_ns = time.monotonic_ns()

    def __call__(self) -> int:
        """Return the time, Unix ms."""
        now_ns = time.monotonic_ns()
        elapsed_ms, rest_ns = divmod(now_ns - self._last_ns, _NS_PER_MS)
        self._last_ns = now_ns - rest_ns
        wall_ms = time.time_ns() // _NS_PER_MS
        self._last_ms = max(wall_ms, self._last_ms + elapsed_ms)
        return self._last_ms


async def create_reliable_channel(
    waku_node: WakuNode,
    channel_id: str,
    sender_id: str,
    content_topic: str,
    options: ReliableChannelOptions | None = None,
    *,
    encryption: Encryption | None = None,
    storage: ChannelStorage | None = None,
    now_ms: Callable[[], int] | None = None,
    node_timeout_s: float = NODE_TIMEOUT_S,
) -> ReliableChannel:
    """Create a channel, or resume a stored channel; by default, also start it.

    After an error, the channel does not run.

    Args:
        waku_node: The node that sends and receives messages.
        channel_id: Id that is the same for all participants.
        sender_id: Id that is unique for each participant and does not change at a
            restart.
        content_topic: Topic of the channel's messages, which no other channel uses.
        options: Options; the defaults are from the document.
        encryption: Encrypts every frame; None for no encryption.
        storage: Stores the channel for a restart; None for a channel that ends with the
            process.
        now_ms: Clock, Unix ms; by default the system's.
        node_timeout_s: Time limit of each call to the node, s.

    Raises:
        StateError: The stored state is unusable or belongs to another channel.
        ValueError: An id is empty or too long, or an option is out of its range.
        TimeoutError: The node did not subscribe in time.
        Exception: The node raised an error while it subscribed.
    """
    options = ReliableChannelOptions() if options is None else options
    clock = SteadyClock() if now_ms is None else now_ms
    pubsub_topic = waku_node.pubsub_topic(content_topic)

    def create() -> ReliableChannelCore:
        return ReliableChannelCore(
            channel_id,
            sender_id,
            content_topic,
            pubsub_topic=pubsub_topic,
            now_ms=clock(),
            random=Random(os.urandom(32)),  # noqa: S311 - no secrets
            options=options,
            encryption=encryption,
        )

    machine: ReliableChannelCore | StoredChannel
    unconfirmed: list[Event] = []
    if storage is None:
        machine = create()
    else:
        restore = partial(
            ReliableChannelCore.restore,
            pubsub_topic=pubsub_topic,
            options=options,
            encryption=encryption,
        )
        machine = StoredChannel.open(storage, create, restore)
        unconfirmed = machine.unconfirmed
        machine.apply(Restarted(), clock())
    channel = ReliableChannel(
        waku_node, machine, content_topic, clock, unconfirmed, node_timeout_s
    )
    if options.auto_start:
        await channel.start()
    return channel


class ReliableChannel:
    """A channel that delivers every message, or notifies the sender of a failure.

    Made by `create_reliable_channel`.
    """

    def __init__(
        self,
        waku_node: WakuNode,
        machine: ReliableChannelCore | StoredChannel,
        content_topic: str,
        now_ms: Callable[[], int],
        unconfirmed: list[Event],
        node_timeout_s: float,
    ) -> None:
        self._node = waku_node
        self._machine = machine
        self._core = machine.core if isinstance(machine, StoredChannel) else machine
        self._content_topic = content_topic
        self._now_ms = now_ms
        self._unconfirmed = unconfirmed
        self._handlers: defaultdict[str, list[Handler]] = defaultdict(list)
        self._calls = NodeCalls(
            waku_node, self._core.channel_id, content_topic, node_timeout_s, self._take
        )
        self._timer: asyncio.TimerHandle | None = None
        self._subscription: Subscription | None = None
        self._opening: asyncio.Task[None] | None = None
        self._connection: ConnectionChanged | None = None
        self._is_broken = False

    # -- the document's functions

    def new_message_id(self, message_payload: bytes) -> str:
        """Return an id for `send` or `send_ephemeral`.

        The first event of a message occurs before `send` returns, so the application
        may need the id earlier.
        """
        return self._core.new_message_id(
            message_payload, self._now_ms(), SystemRandom()
        )

    def send(self, message_payload: bytes, *, message_id: str = "") -> str:
        """Send a message, and retry until it is acknowledged or no retry is left.

        Args:
            message_payload: What to send.
            message_id: Unique id, for instance from `new_message_id`; if empty, the
                channel creates one.

        Returns:
            The id of the message; all events of the message have this id. Errors of the
            payload are reported as events.

        Raises:
            NotStarted: The channel is not started.
            MessageIdRefused: The id is too long, or another message has it.
        """
        return self._apply(Send(message_payload, message_id)).message_id

    def send_ephemeral(self, message_payload: bytes, *, message_id: str = "") -> str:
        """Send a message once, without reliability; see `send`.

        One event reports the result of the message.
        """
        return self._apply(SendEphemeral(message_payload, message_id)).message_id

    @property
    def missing(self) -> tuple[HistoryEntry, ...]:
        """Missing messages, in the order in which other messages first named them."""
        return self._core.missing

    async def start(self) -> None:
        """Subscribe to the content topic, and begin to sync, retry and query.

        If the channel is started or starting, the call waits for the subscription. The
        call returns early if `stop` cancels a pending subscription.

        Raises:
            TimeoutError: The node did not subscribe in time; the channel is stopped.
            Exception: The node raised an error; the channel is stopped.
        """
        begins = not self.is_started()
        if begins:
            unconfirmed, self._unconfirmed = self._unconfirmed, []
            self._emit(unconfirmed)
            self._apply(Start())
            self._subscription = Subscription(self._node, self._content_topic, self)
            self._opening = self._calls.run(self._open(self._subscription))
        opening = self._opening
        assert opening is not None  # noqa: S101 - made by the first start
        try:
            await asyncio.wait([opening])
        except asyncio.CancelledError:
            # If another caller began the start, the start continues.
            if begins and opening is self._opening and not opening.done():
                self._end()
                self._calls.give_up(self._calls.under_way)
            raise
        if not opening.cancelled():
            opening.result()

    async def stop(self, *, wait_s: float = STOP_WAIT_S) -> None:
        """Unsubscribe, and end sync, retries and queries.

        Calls that the node does not answer within `wait_s` seconds are cancelled. The
        next start sends the frames of these calls again.
        """
        self._end()
        # The set is copied, because a later start may add calls.
        if calls := set(self._calls.under_way):
            _, unanswered = await asyncio.wait(calls, timeout=wait_s)
            self._calls.give_up(unanswered)
            if unanswered:
                await asyncio.wait(unanswered, timeout=STOP_WAIT_S)

    def is_started(self) -> bool:
        """Return whether the channel is started and has not failed."""
        return self._core.is_started and not self._is_broken

    def sync_status(self) -> SyncStatus:
        """Return how many chunks were received, are missing, and are lost."""
        return self._core.sync_status

    # -- events

    def on(self, name: EventName | str, handler: Handler) -> None:
        """Call a handler for each event of a name, such as "message-received".

        The names of the published API (LIP-173), such as "received", are also valid. A
        handler does not get events from before its registration. To receive events from
        before a restart, create the channel without `auto_start`, and start it after
        this call.

        Raises:
            ValueError: No event has this name.
        """
        self._handlers[_event_name(name)].append(handler)

    def off(self, name: EventName | str, handler: Handler) -> None:
        """Remove a handler.

        Raises:
            ValueError: The handler was not registered.
        """
        self._handlers[_event_name(name)].remove(handler)

    # -- calls by the node

    def arrived(self, message: WakuMessage, message_hash: bytes) -> None:
        """Receive a message of the content topic."""
        if self.is_started():
            self._take(Arrived(message, message_hash))

    def connection_changed(self, *, is_online: bool, has_store: bool) -> None:
        """Receive the state of the node's connections; the state may be unchanged."""
        connection = ConnectionChanged(is_online, has_store)
        if connection != self._connection:
            self._connection = connection
            self._take(connection)

    # -- the loop

    def _end(self) -> None:
        self._end_subscription()
        self._connection = None
        if not self._is_broken:
            self._apply(Stop())

    def _end_subscription(self) -> None:
        if self._subscription is not None:
            self._subscription.end()
            self._subscription = None

    def _take(self, event: Input) -> None:
        """Apply an input; log errors, since no caller would receive them."""
        if self._is_broken:
            return
        try:
            self._apply(event)
        except Exception:
            _log.exception("channel %r stops", self._core.channel_id)

    def _apply(self, event: Input) -> Output:
        if self._is_broken:
            message = f"channel {self._core.channel_id!r:.80} stopped after an error"
            raise RuntimeError(message)
        try:
            output = self._machine.apply(event, self._now_ms())
        except (MessageIdRefused, NotStarted):
            raise
        except Exception:
            # The state in memory is unusable: continue from the stored state.
            self._is_broken = True
            if self._timer is not None:
                self._timer.cancel()
            self._end_subscription()
            raise
        self._calls.begin(output)
        self._plan()
        self._emit(output.events)
        return output

    def _emit(self, events: list[Event]) -> None:
        for event in events:
            for handler in tuple(self._handlers[event.name]):
                try:
                    handler(event)
                except Exception:
                    # The application's error must not stop the channel.
                    _log.exception("a handler of %r failed", str(event.name))

    def _plan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self._machine.next_deadline_ms
        if deadline_ms < inf:
            delay_s = max(0.0, (deadline_ms - self._now_ms()) / 1000)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._advance)

    def _advance(self) -> None:
        self._timer = None
        # Timers may fire a little early.
        if self._machine.next_deadline_ms <= self._now_ms():
            self._take(Advance())
        else:
            self._plan()

    async def _open(self, subscription: Subscription) -> None:
        try:
            await self._calls.answer(subscription.open())
        except BaseException:
            if subscription is self._subscription:
                self._end()
                self._calls.give_up(self._calls.under_way)
            raise
