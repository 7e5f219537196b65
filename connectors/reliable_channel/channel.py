"""The reliable channel of RELIABLE-CHANNEL-API, on asyncio.

RELIABLE-CHANNEL-API is a specification. Functions have its names in snake case, and
events have its names unchanged. All calls run in one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from inspect import iscoroutinefunction
from math import inf
from random import Random, SystemRandom
from typing import Any

from connectors.event_loop.clock import SteadyClock
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

NODE_TIMEOUT_S = 60.0
"""Default time limit of a call to the node. Until a call ends, the channel neither
retries the message that the call sends, nor repeats the query that the call makes."""

STOP_WAIT_S = 5.0
"""Default time for which `stop` waits for the node's answers. If the network accepts a
message, the message usually comes back from the network within two seconds."""

Handler = Callable[[Any], object]
"""Receives an event. A handler runs in the event loop, and must not block it."""

_PUBLISHED = {published: name for name, published in LIP_173_NAMES.items()}


def _event_name(name: str) -> EventName:
    return _PUBLISHED.get(name) or EventName(name)


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

    If this function raises an error, no channel runs.

    Args:
        waku_node: The node that sends and receives messages.
        channel_id: Id of the channel, the same for all its participants.
        sender_id: Id of this participant. No other participant may have this id. It
            must stay the same after a restart.
        content_topic: Content topic that only this channel's messages use.
        options: Options; the defaults are from RELIABLE-CHANNEL-API.
        encryption: Encrypts every frame; None for no encryption.
        storage: Stores the channel's state, so that the channel can resume after a
            restart. If None, the state is lost when the process ends.
        now_ms: Clock, Unix ms; by default a `SteadyClock`.
        node_timeout_s: Time limit of each call to the node, s.

    Raises:
        StateError: The stored state is unusable or belongs to another channel.
        ValueError: An id is empty or too long, or an option is out of its range.
        TimeoutError: The node did not subscribe in time.
        Exception: The node raised an error while it subscribed.
    """
    options = ReliableChannelOptions() if options is None else options
    clock = now_ms or SteadyClock()
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
        restarted = machine.apply(Restarted(options), clock(), while_emitting=True)
        unconfirmed = machine.unconfirmed + restarted.events
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
        self._emitting = 0
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

        The first event of a message occurs before `send` returns. An application that
        needs the message's id in this event can thus choose the id before it calls
        `send`.
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
            The id of the message; all events of the message have this id. If the
            payload cannot be sent, an event reports the error.

        Raises:
            NotStarted: The channel is not started.
            MessageIdRefused: The id is too long, or another message has it.
        """
        return self._apply(Send(message_payload, message_id)).message_id

    def send_ephemeral(self, message_payload: bytes, *, message_id: str = "") -> str:
        """Send a message once, without reliability; see `send`.

        One event reports whether the message was sent.
        """
        return self._apply(SendEphemeral(message_payload, message_id)).message_id

    @property
    def missing(self) -> tuple[HistoryEntry, ...]:
        """Missing messages, in the order in which causal histories first named them."""
        return self._core.missing

    async def start(self) -> None:
        """Subscribe to the content topic, and begin to sync, retry and query.

        If another call has begun the start, this call only waits until the node has
        subscribed. If `stop` cancels a pending subscription, this call returns early.

        Raises:
            TimeoutError: The node did not subscribe in time; the channel is stopped.
            RuntimeError: The channel stopped after an error.
            Exception: The node raised an error; the channel is stopped.
        """
        begins = not self.is_started()
        if begins:
            self._apply(Start())
            # A handler of an event from before the restart may have sent a message that
            # could not be stored.
            self._check()
            self._subscription = Subscription(self._node, self._content_topic, self)
            self._opening = self._calls.run(self._open(self._subscription))
        opening = self._opening
        assert opening is not None  # noqa: S101 - made by the first start
        try:
            await asyncio.wait([opening])
        except asyncio.CancelledError:
            # This call was cancelled. If another call began the start, the start
            # continues.
            if begins and opening is self._opening and not opening.done():
                self._end()
                self._calls.give_up(self._calls.under_way)
            raise
        if not opening.cancelled():
            opening.result()

    async def stop(self, *, wait_s: float = STOP_WAIT_S) -> None:
        """Unsubscribe, and end sync, retries and queries.

        If the node does not answer pending calls within `wait_s` seconds, the calls are
        cancelled. After the next start, the channel retries the messages whose sending
        was cancelled.
        """
        self._end()
        # The set is copied, because a start during the wait may add calls.
        if calls := set(self._calls.under_way):
            _, unanswered = await asyncio.wait(calls, timeout=wait_s)
            self._calls.give_up(unanswered)
            if unanswered:
                await asyncio.wait(unanswered, timeout=STOP_WAIT_S)

    def is_started(self) -> bool:
        """Return whether the channel is started and has not failed."""
        return self._core.is_started and not self._is_broken

    def sync_status(self) -> SyncStatus:
        """Return how many chunks are received, missing, and lost."""
        return self._core.sync_status

    # -- events

    def on(self, name: EventName | str, handler: Handler) -> None:
        """Call a handler for each event that has a name, such as "message-received".

        The names of the published API (LIP-173), such as "received", are also valid. A
        handler does not get events that occurred before it was registered. The start of
        a stored channel reports the last events before the restart. To receive them,
        create the channel without `auto_start`, call `on`, and then call `start`.

        Raises:
            TypeError: The handler is a coroutine function, which would never run.
            ValueError: No event has this name.
        """
        if iscoroutinefunction(handler):
            message = (
                f"the handler of {str(name)!r} is a coroutine function: pass a plain "
                "function, which may start a task"
            )
            raise TypeError(message)
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
        self._check()
        try:
            output = self._machine_apply(event)
        except (MessageIdRefused, NotStarted):
            raise
        except Exception:
            # The state in memory may be wrong, so this object accepts no more inputs.
            # The application can create the channel again, from the stored state.
            self._is_broken = True
            if self._timer is not None:
                self._timer.cancel()
            self._end_subscription()
            raise
        self._calls.begin(output)
        self._plan()
        events = output.events
        if isinstance(event, Start):
            # Only now, handlers of the events from before the restart may call `send`.
            unconfirmed, self._unconfirmed = self._unconfirmed, []
            events = unconfirmed + events
        self._emit(events)
        return output

    def _check(self) -> None:
        if self._is_broken:
            message = f"channel {self._core.channel_id!r:.80} stopped after an error"
            raise RuntimeError(message)

    def _machine_apply(self, event: Input) -> Output:
        now_ms = self._now_ms()
        if not isinstance(self._machine, StoredChannel):
            return self._machine.apply(event, now_ms)
        # Events from before the restart are emitted by the first start.
        waits = self._emitting > 0 or bool(self._unconfirmed)
        return self._machine.apply(event, now_ms, while_emitting=waits)

    def _emit(self, events: list[Event]) -> None:
        self._emitting += 1
        try:
            for event in events:
                self._emit_one(event)
        finally:
            self._emitting -= 1

    def _emit_one(self, event: Event) -> None:
        for handler in tuple(self._handlers[event.name]):
            try:
                handler(event)
            except Exception:
                # An error in the application's handler must not stop the channel.
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
