"""Simulates reliable channels on one network with a store, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from sds_core.reliable_channel import (
    Advance,
    Arrived,
    ConnectionChanged,
    Dispatch,
    Dispatched,
    Event,
    Input,
    Output,
    ReliableChannelCore,
    StoreAnswered,
    StoreRequest,
)
from sds_core.simulation.links import Links
from sds_core.simulation.scenario import Link
from sds_core.simulation.streams import Agenda, Streams
from sds_core.waku import WakuMessage

_NS_PER_MS = 1_000_000


class Emitted(NamedTuple):
    """An event that a channel emitted."""

    at_ms: int
    by: str
    event: Event


class Transmission(NamedTuple):
    """A message that a participant sent."""

    at_ms: int
    by: str
    dispatch: Dispatch


class Reception(NamedTuple):
    """A participant received a message from the message's sender or from the store.

    `by` is the participant that received the message.
    """

    at_ms: int
    by: str
    message: WakuMessage


Loss = Callable[[Transmission, str], bool]
"""Takes a transmission and a participant's name; returns whether the transmission is
lost on the way to this participant."""


class SimulatedStore:
    """A store node, which answers queries by hash and by time."""

    def __init__(self) -> None:
        self._messages: dict[bytes, WakuMessage] = {}

    def __contains__(self, message_hash: bytes) -> bool:
        """Return whether a message is stored."""
        return message_hash in self._messages

    def put(self, message: WakuMessage, message_hash: bytes) -> None:
        """Store a message, unless it is ephemeral."""
        if not message.ephemeral:
            self._messages[message_hash] = message

    def page(self, request: StoreRequest, content_topic: str) -> StoreAnswered:
        """Return one page of the messages for which a query asks.

        If the query is by time, the newest messages come first.
        """
        if request.hashes:
            found = [one for one in request.hashes if one in self._messages]
        else:
            found = sorted(
                (
                    one
                    for one, message in self._messages.items()
                    if message.content_topic == content_topic
                    and request.start_ms * _NS_PER_MS
                    <= message.timestamp_ns
                    <= request.end_ms * _NS_PER_MS
                ),
                key=lambda one: (self._messages[one].timestamp_ns, one),
                reverse=True,
            )
        if request.cursor is not None:
            found = found[found.index(request.cursor) + 1 :]
        page = found[: request.page_size]
        cursor = page[-1] if len(found) > len(page) else None
        arrived = [Arrived(self._messages[one], one) for one in page]
        return StoreAnswered(request.number, arrived, cursor)


class ReliableNetwork:
    """Carries messages between participants, and runs the timers of their channels.

    Messages are lost and delayed as the link's settings define.

    Attributes:
        now_ms: Virtual time, Unix ms.
        events: All events that the participants' channels emitted, in order of time.
        transmissions: All messages that participants sent, in order of time.
        receptions: All messages that participants received, in order of time. If a
            participant receives a message twice, the list has two entries. Messages
            that attached participants (`attach`) get from a store are not in the list.
        losses: Functions that are called for each transmission and each participant. If
            one of them returns True, the participant does not get the transmission.
        keeps: Whether messages that participants send also go to the store.
    """

    def __init__(
        self, *, start_ms: int, link: Link, participants: int, seed: int
    ) -> None:
        self.now_ms = start_ms
        self.events: list[Emitted] = []
        self.transmissions: list[Transmission] = []
        self.receptions: list[Reception] = []
        self.losses: list[Loss] = []
        self.store = SimulatedStore()
        self.keeps = True
        self._start_ms = start_ms
        self._agenda = Agenda()
        streams = Streams(seed)
        # The store is also a receiver. Its index follows those of the participants.
        self._links = Links(
            link, participants, participants + 1, streams, "reliable channels"
        )
        self._store_index = participants
        self._everybody = np.arange(participants + 1)
        self._channels: dict[str, ReliableChannelCore] = {}
        self._index: dict[str, int] = {}
        self._online: set[str] = set()
        self._outside: dict[str, Callable[[Arrived], None]] = {}

    def channel(self, name: str) -> ReliableChannelCore:
        """Return the channel of a participant."""
        return self._channels[name]

    def join(self, name: str, channel: ReliableChannelCore) -> None:
        """Add a participant, or the new process of a restarted participant.

        The participant is online at once.
        """
        self._channels[name] = channel
        self._index.setdefault(name, len(self._index))
        self.connect(name)

    def attach(self, name: str, receive: Callable[[Arrived], None]) -> None:
        """Add a participant whose channel runs outside of this network.

        The network passes messages for the participant to `receive`. To send the
        participant's messages, call `transmit`.
        """
        self._outside[name] = receive
        self._index.setdefault(name, len(self._index))

    def leave(self, name: str) -> None:
        """Remove a participant as if its process were killed."""
        del self._channels[name]
        self._online.discard(name)

    def connect(self, name: str, *, has_store: bool = True) -> None:
        """Bring a participant's node online."""
        self._online.add(name)
        self.apply(name, ConnectionChanged(is_online=True, has_store=has_store))

    def disconnect(self, name: str) -> None:
        """Take a participant's node offline, so that it neither sends nor receives."""
        self._online.discard(name)
        self.apply(name, ConnectionChanged(is_online=False, has_store=False))

    def apply(self, name: str, event: Input) -> Output:
        """Pass an input to a participant's channel, and execute the outputs."""
        channel = self._channels[name]
        if isinstance(event, StoreAnswered):
            self._note(name, *event.messages)
        output = channel.apply(event, self.now_ms)
        self.events += [Emitted(self.now_ms, name, one) for one in output.events]
        for dispatch in output.dispatches:
            self._send(name, dispatch)
        for request in output.queries:
            page = self.store.page(request, channel.content_topic)
            self._later(1, partial(self._if_present, name, channel, page))
        self._plan(name, channel)
        return output

    def run(self, duration_ms: int) -> None:
        """Advance virtual time."""
        end_ms = self.now_ms + duration_ms
        for at_ms, action in self._agenda.until(end_ms - self._start_ms + 1):
            self.now_ms = self._start_ms + at_ms
            action(at_ms)
        self.now_ms = end_ms

    def transmit(self, name: str, dispatch: Dispatch) -> None:
        """Carry a participant's message to the other participants and to the store."""
        sent = Transmission(self.now_ms, name, dispatch)
        self.transmissions.append(sent)
        elapsed_ms = self.now_ms - self._start_ms
        arrives, delays_ms = self._links.carry(
            self._index[name], self._everybody, elapsed_ms
        )
        arrived = Arrived(dispatch.message, dispatch.message_hash)
        if self.keeps and arrives[self._store_index]:
            self.store.put(dispatch.message, dispatch.message_hash)
        for other, index in self._index.items():
            is_lost = any([loss(sent, other) for loss in self.losses])
            if other != name and arrives[index] and not is_lost:
                delay_ms = int(delays_ms[index])
                self._later(delay_ms, partial(self._deliver, other, arrived))

    def _send(self, name: str, dispatch: Dispatch) -> None:
        channel = self._channels[name]
        accepted = Dispatched(dispatch.number)
        self._later(1, partial(self._if_present, name, channel, accepted))
        self.transmit(name, dispatch)

    def _deliver(self, name: str, arrived: Arrived, _: int) -> None:
        if name in self._outside:
            self._note(name, arrived)
            self._outside[name](arrived)
        elif name in self._online:
            self._note(name, arrived)
            self.apply(name, arrived)

    def _note(self, name: str, *arrived: Arrived) -> None:
        self.receptions += [
            Reception(self.now_ms, name, one.message) for one in arrived
        ]

    def _if_present(
        self, name: str, channel: ReliableChannelCore, event: Input, _: int
    ) -> None:
        if self._channels.get(name) is channel:
            self.apply(name, event)

    def _plan(self, name: str, channel: ReliableChannelCore) -> None:
        deadline_ms = channel.next_deadline_ms
        if deadline_ms != float("inf"):
            wait_ms = max(0, int(deadline_ms) - self.now_ms)
            self._later(wait_ms, partial(self._advance, name, channel))

    def _advance(self, name: str, channel: ReliableChannelCore, _: int) -> None:
        # If the channel was replaced, or its deadline is now later, do nothing. Another
        # call is planned for the new deadline.
        is_present = self._channels.get(name) is channel
        if is_present and channel.next_deadline_ms <= self.now_ms:
            self.apply(name, Advance())

    def _later(self, delay_ms: int, action: Callable[[int], None]) -> None:
        self._agenda.add(self.now_ms - self._start_ms + delay_ms, action)
