"""Stores a node's messages and message ids, up to the limits in `Options`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sds_core.mvds.changes import StoredMessage
from sds_core.mvds.options import Options
from sds_core.mvds.parents import parents_of
from sds_core.mvds.payload import Message


class _Pool:
    """Sizes of stored messages, oldest message first.

    One pool is for the node's own messages, another for messages of other nodes.
    """

    def __init__(self) -> None:
        self.sizes_bytes: dict[bytes, int] = {}
        self.total_bytes = 0

    def add(self, message_id: bytes, size_bytes: int) -> None:
        self.sizes_bytes[message_id] = size_bytes
        self.total_bytes += size_bytes

    def remove(self, message_id: bytes) -> None:
        self.total_bytes -= self.sizes_bytes.pop(message_id)


class MessageStore:
    """Known messages by id.

    The limits on the number and the total size of messages apply separately to the
    node's own messages and to messages of other nodes. Otherwise, a peer that sends
    many messages could displace the node's own unsent messages.

    If a message changes, the store calls `mark` with the message's id.
    """

    def __init__(self, options: Options, mark: Callable[[bytes], None]) -> None:
        self._options = options
        self._mark = mark
        self._known: dict[bytes, StoredMessage] = {}
        self._own = _Pool()
        self._others = _Pool()
        # Known ids whose messages were dropped, oldest first; used as an ordered set.
        self._dropped: dict[bytes, None] = {}

    def __contains__(self, message_id: bytes) -> bool:
        """Return whether an id is known, even if its message was dropped."""
        return message_id in self._known

    def __iter__(self) -> Iterator[bytes]:
        """Yield all known ids, oldest first."""
        return iter(self._known)

    def get(self, message_id: bytes) -> StoredMessage | None:
        """Return the stored values of a message; None if its id is unknown."""
        return self._known.get(message_id)

    def message(self, message_id: bytes) -> Message | None:
        """Return a message; None if it is unknown or was dropped."""
        stored = self._known.get(message_id)
        return stored.message if stored else None

    def is_delivered(self, message_id: bytes) -> bool:
        """Return whether a message is known and was delivered to the application."""
        stored = self._known.get(message_id)
        return stored is not None and stored.is_delivered

    def add(self, message_id: bytes, stored: StoredMessage) -> None:
        """Add a new message.

        The store may then exceed its limits, until the caller drops messages (see
        `surplus`).
        """
        self._known[message_id] = stored
        if stored.message is None:
            self._dropped[message_id] = None
        else:
            parents = parents_of(stored.message)
            size_bytes = len(stored.message.body) + sum(map(len, parents))
            self._pool(stored).add(message_id, size_bytes)
        self._mark(message_id)

    def set_delivered(self, message_id: bytes) -> None:
        """Mark a message as delivered to the application."""
        self._known[message_id] = replace(self._known[message_id], is_delivered=True)
        self._mark(message_id)

    def surplus(self) -> bytes | None:
        """Return the id of the message to drop next; None if no limit is exceeded."""
        for pool in (self._own, self._others):
            if (
                len(pool.sizes_bytes) > self._options.max_messages
                or pool.total_bytes > self._options.max_stored_bytes
            ):
                return next(iter(pool.sizes_bytes))
        return None

    def drop(self, message_id: bytes) -> None:
        """Drop a message; its id stays known."""
        stored = self._known[message_id]
        self._pool(stored).remove(message_id)
        self._known[message_id] = replace(stored, message=None)
        self._dropped[message_id] = None
        self._mark(message_id)

    def forget_surplus_ids(self) -> None:
        """Drop ids of dropped messages, oldest first, until the limit is met.

        `Options.max_known_ids` limits the number of all known ids. Call this only after
        `surplus` has returned None.
        """
        while len(self._known) > self._options.max_known_ids:
            # `_dropped` is not empty here, because both pools together hold at most
            # `max_known_ids` messages.
            oldest = next(iter(self._dropped))
            del self._dropped[oldest], self._known[oldest]
            self._mark(oldest)

    def _pool(self, stored: StoredMessage) -> _Pool:
        return self._own if stored.sender is None else self._others
