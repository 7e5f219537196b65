"""Delivers messages to the application.

`Options.resolution` decides whether a message waits for its parents.
"""

from __future__ import annotations

from collections.abc import Iterator

from sds_core.mvds.events import Delivered, Event, Waiting
from sds_core.mvds.message_store import MessageStore
from sds_core.mvds.options import Options, Resolution
from sds_core.mvds.parents import Heads, WaitingMessages, parents_of
from sds_core.mvds.payload import Message


class Resolver:
    """Decides when a message is delivered, and which parents our next message names."""

    def __init__(self, options: Options, store: MessageStore) -> None:
        self._options = options
        self._store = store
        self._heads = Heads()
        self._waiting = WaitingMessages()

    def parents(self, group_id: bytes) -> tuple[bytes, ...]:
        """Return the parents that our next message in a group names."""
        if not self._options.write_parents:
            return ()
        return self._heads.newest(group_id, self._options.max_parents)

    def waiting(self) -> Iterator[bytes]:
        """Yield the ids of the messages that wait for their parents, oldest first."""
        return iter(self._waiting)

    def appended(self, message_id: bytes, message: Message) -> None:
        """Register a message of our own, which counts as delivered."""
        self._heads.stored(message)
        self._heads.delivered(message_id, message.group_id)

    def ephemeral(self, message_id: bytes, message: Message, sender: bytes) -> Event:
        """Return the delivery event of an ephemeral message.

        An ephemeral message never waits for its parents.
        """
        missing = self._missing(message_id, message)
        return Delivered(message_id, message, sender, missing)

    def received(self, message_id: bytes, events: list[Event]) -> None:
        """Deliver a newly stored message, or make it wait for its parents.

        Afterwards, the caller must call `deliver_surplus`.
        """
        message = self._store.message(message_id)
        assert message is not None  # noqa: S101 - stored by the caller
        self._heads.stored(message)
        missing = self._missing(message_id, message)
        if missing and self._options.resolution is Resolution.CONSISTENT:
            self._waiting.add(message_id, missing)
            events.append(Waiting(message_id, missing))
        else:
            self._deliver(message_id, missing, events)

    def deliver_surplus(self, events: list[Event]) -> None:
        """Deliver the oldest waiting messages until their number is within the limit.

        Without consistent resolution, the limit is 0. A node that was restored from a
        state with other options may nevertheless have waiting messages.
        """
        is_consistent = self._options.resolution is Resolution.CONSISTENT
        limit = self._options.max_waiting if is_consistent else 0
        while len(self._waiting) > limit:
            oldest = self._waiting.oldest()
            self._deliver(oldest, self._waiting.remove(oldest), events)

    def before_drop(self, message_id: bytes, events: list[Event]) -> None:
        """Prepare to drop a message; if it waits for parents, deliver it now."""
        if message_id in self._waiting:
            self._deliver(message_id, self._waiting.remove(message_id), events)
        message = self._store.message(message_id)
        if message is not None:
            self._heads.dropped(message_id, message)

    def restore(self) -> None:
        """Find the heads and the waiting messages in a loaded store."""
        for message_id in self._store:
            message = self._store.message(message_id)
            if message is not None:
                self._heads.stored(message)
        for message_id in self._store:
            message = self._store.message(message_id)
            if message is None:
                continue
            if self._store.is_delivered(message_id):
                self._heads.delivered(message_id, message.group_id)
            else:
                self._waiting.add(message_id, self._missing(message_id, message))

    def _missing(self, message_id: bytes, message: Message) -> tuple[bytes, ...]:
        """Return a message's undelivered parents.

        If the message names itself as a parent, this parent is ignored.
        """
        parents = dict.fromkeys(parents_of(message))
        return tuple(
            parent
            for parent in parents
            if parent != message_id and not self._store.is_delivered(parent)
        )

    def _deliver(
        self, message_id: bytes, missing: tuple[bytes, ...], events: list[Event]
    ) -> None:
        """Deliver a message, then the messages that waited only for this delivery."""
        ready = [(message_id, missing)]
        while ready:
            one, lacking = ready.pop(0)
            stored = self._store.get(one)
            assert stored is not None  # noqa: S101 - waiting messages are stored
            assert stored.message is not None  # noqa: S101
            assert stored.sender is not None  # noqa: S101
            self._store.set_delivered(one)
            self._heads.delivered(one, stored.group_id)
            events.append(Delivered(one, stored.message, stored.sender, lacking))
            ready += [(child, ()) for child in self._waiting.delivered(one)]
