"""How content messages enter the local log (SDS, "Deliver Message").

A message is delivered after all messages on which it depends. Until then, the message
waits in the incoming buffer.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from sds_core.message_channel.events import (
    Buffer,
    Delivered,
    Event,
    Evicted,
    IrretrievablyLost,
    Missing,
)
from sds_core.message_channel.incoming import MissingDependency, Waiting
from sds_core.message_channel.parts import Behaviour
from sds_core.wire import HistoryEntry, HistoryEntryLike


class Delivery(Behaviour):
    """Moves messages from the incoming buffer into the local log."""

    def unmet(
        self, unknown: list[HistoryEntryLike], named_by: str, now_ms: int
    ) -> tuple[set[str], list[Event]]:
        """Return ids of a message's unmet dependencies; record those that are missing.

        `unknown` contains the entries of the message's causal history that the log
        lacks. `named_by` is the id of the message that has this causal history.
        """
        incoming = self._incoming
        buffered_is_met = self._profile.buffered_meets_dependencies
        unmet: set[str] = set()
        events: list[Event] = []
        for entry in unknown:
            dependency = entry.message_id
            if dependency in incoming.lost or dependency in unmet:
                continue
            if dependency in incoming.waiting:
                if not buffered_is_met:
                    unmet.add(dependency)
                continue
            plain = self._plain(entry)
            if dependency not in incoming.missing:
                incoming.missing[dependency] = MissingDependency(plain, now_ms)
                events.append(Missing(*plain, named_by))
            elif (completed := incoming.learn(plain)) is not None:
                self._repairer.requests.learn(completed)
            missing = incoming.missing[dependency]
            if missing.is_awaited:
                unmet.add(dependency)
            events += self._repairer.named(missing.entry, missing.since_ms, now_ms)
        while len(incoming.missing) > self._profile.missing_limit:
            oldest = next(iter(incoming.missing))
            events.append(Evicted(Buffer.MISSING, oldest))
            events += self.lose(oldest, now_ms)
        # `lose` may have delivered some messages of `unmet`, and marked others as lost.
        # In both cases, the dependencies on these messages are met now.
        unmet = {
            one for one in unmet if one in incoming.missing or one in incoming.waiting
        }
        return unmet, events

    def wait(self, message_id: str, message: Waiting, now_ms: int) -> list[Event]:
        """Put a message into the incoming buffer."""
        self._incoming.hold(message_id, message)
        events: list[Event] = []
        if self._profile.buffered_meets_dependencies:
            events += self._meet([message_id], now_ms)
        profile, waiting = self._profile, self._incoming.waiting
        while waiting.is_over(profile.incoming_limit, profile.incoming_bytes_limit):
            oldest = waiting.oldest()
            events.append(Evicted(Buffer.INCOMING, oldest))
            events += self._release(oldest, now_ms)
        return events

    def lose(self, message_id: str, now_ms: int) -> list[Event]:
        """Mark a missing message as lost; deliver messages that waited only for it."""
        if message_id not in self._incoming.missing:
            return []
        entry = self._incoming.give_up(message_id)
        self._repairer.requests.remove(message_id)
        return [IrretrievablyLost(*entry), *self._meet([message_id], now_ms)]

    def met_elsewhere(self, message_id: str, now_ms: int) -> list[Event] | None:
        """Record that the application received a message from another source.

        Messages that waited only for this message are delivered. The result is None if
        this message is already in the log, in the log's `forgotten` ids, or in the
        incoming buffer.
        """
        if self._log.knows(message_id) or message_id in self._incoming.waiting:
            return None
        self._incoming.is_had(message_id)
        self._repairer.requests.remove(message_id)
        self._log.remember(message_id, 0)
        self._bloom.add(message_id)
        return self._meet([message_id], now_ms)

    def _release(self, message_id: str, now_ms: int) -> list[Event]:
        """Deliver a waiting message early, after those of its dependencies that wait.

        Its other dependencies stay missing, because they may still arrive.
        """
        needed = self._incoming.needed_by(message_id)
        events = self._meet(self._incoming.no_longer_awaited(needed), now_ms)
        return events + self.deliver_circle(self._incoming.waiting_of(needed), now_ms)

    def deliver_circle(self, circle: Iterable[str], now_ms: int) -> list[Event]:
        """In the given order, deliver messages that wait for each other."""
        events: list[Event] = []
        for message_id in circle:
            message = self._incoming.waiting.pop(message_id, None)
            if message is not None:
                events += self.deliver_all([message], now_ms)
        return events

    def _meet(self, dependencies: Iterable[str], now_ms: int) -> list[Event]:
        freed = [
            message
            for dependency in dependencies
            for message in self._incoming.met(dependency)
        ]
        return self.deliver_all(freed, now_ms) if freed else []

    def deliver_all(self, ready: list[Waiting], now_ms: int) -> list[Event]:
        """Deliver messages, and the messages that waited for them, in the log's order.

        Source: SDS, "Deliver Message". The function uses a heap instead of recursion,
        because a long chain of dependencies could exceed Python's recursion limit.
        """
        events: list[Event] = []
        order = [(message.place, message) for message in ready]
        heapify(order)
        while order:
            (_, message_id), message = heappop(order)
            events.append(self._deliver(message, now_ms))
            for freed in self._incoming.met(message_id):
                heappush(order, (freed.place, freed))
        return events

    def _deliver(self, message: Waiting, now_ms: int) -> Event:
        frame, sender_id = message.frame, message.frame.sender_id
        lamport, message_id = message.place
        entry = HistoryEntry(message_id, message.retrieval_hint, sender_id)
        self._log.add(lamport, entry)
        self._repairer.retain(message_id, message.value, sender_id, now_ms)
        self._lamport.adopt(lamport, now_ms)
        return Delivered(message_id, sender_id, lamport, frame.content)

    def _plain(self, entry: HistoryEntryLike) -> HistoryEntry:
        """Copy a frame's history entry, but omit a retrieval hint that is too long."""
        hint = entry.retrieval_hint
        if len(hint) > self._profile.hint_limit:
            hint = b""
        return HistoryEntry(entry.message_id, hint, entry.sender_id)
