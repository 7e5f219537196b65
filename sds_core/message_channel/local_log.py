"""The local log of a channel: the ids of sent and delivered messages, in order."""

from __future__ import annotations

from bisect import insort

from sds_core.message_channel.profile import LogOrder
from sds_core.wire import HistoryEntry


class LocalLog:
    """The ids of sent and delivered messages, in order.

    With `LogOrder.LAMPORT`, the ids are sorted by (lamport, message id), so all
    participants have the same order (SDS, "Deliver Message", "Resolve Conflicts"). With
    `LogOrder.ARRIVAL`, the ids are in order of delivery. A full log drops its first
    entry.

    Attributes:
        entries: The history entry of each message, by message id.
        forgotten: The newest ids, at most `limit`, of three kinds: ids that the log
            dropped, ids of withdrawn messages, and ids of messages that the application
            received from another source. The value of an id is its message's Lamport
            timestamp; with `LogOrder.ARRIVAL`, it is the arrival number. For a
            withdrawn message or a message from another source, the value is 0. A
            dependency on one of these ids is met, and another copy of its message is a
            duplicate.
        horizon: greatest (lamport, message id) that `forgotten` dropped; None if
            `forgotten` dropped no id.
    """

    def __init__(self, order: LogOrder, limit: int) -> None:
        self._by_arrival = order is LogOrder.ARRIVAL
        self._limit = limit
        self._order: list[tuple[int, str]] = []
        self.entries: dict[str, HistoryEntry] = {}
        self.hintless: set[str] = set()
        self.forgotten: dict[str, int] = {}
        self.horizon: tuple[int, str] | None = None

    def is_older(self, lamport: int, message_id: str) -> bool:
        """Return whether a message sorts before the log's first entry.

        If `forgotten` has dropped no id that was in the log, or if the log is in the
        order of arrival, the result is False.
        """
        if self._ordered_horizon is None or not self._order:
            return False
        return (lamport, message_id) < self._order[0]

    def add(self, lamport: int, entry: HistoryEntry) -> None:
        """Add a message that is not in the log."""
        message_id = entry.message_id
        order = self._order
        if self._by_arrival:
            lamport = order[-1][0] + 1 if order else 1
        key = (lamport, message_id)
        if not order or key > order[-1]:
            order.append(key)
        else:
            insort(order, key)
        self._put(entry)
        if len(order) > self._limit:
            key = order.pop(0)
            del self.entries[key[1]]
            self.hintless.discard(key[1])
            self.remember(key[1], key[0])

    def withdraw(self, message_id: str) -> None:
        """Move an id from the log to `forgotten`, so that no later history names it."""
        if self.entries.pop(message_id, None) is None:
            return
        self.hintless.discard(message_id)
        self._order = [key for key in self._order if key[1] != message_id]
        self.remember(message_id, 0)

    def remember(self, message_id: str, lamport: int) -> None:
        """Add an id to `forgotten`; if `forgotten` is full, drop its oldest id."""
        self.forgotten[message_id] = lamport
        if len(self.forgotten) > self._limit:
            oldest = next(iter(self.forgotten))
            key = (self.forgotten.pop(oldest), oldest)
            self.horizon = key if self.horizon is None else max(self.horizon, key)

    def note_hint(self, message_id: str, hint: bytes) -> bool:
        """Store the retrieval hint of an id; return False if the log lacks the id."""
        entry = self.entries.get(message_id)
        if entry is not None:
            self._put(entry._replace(retrieval_hint=hint))
        return entry is not None

    def learn_hint(self, message_id: str, hint: bytes) -> None:
        """If a message in the log has no retrieval hint yet, store the hint."""
        if message_id in self.hintless:
            self.note_hint(message_id, hint)

    def knows(self, message_id: str) -> bool:
        """Return whether an id is in the log or in `forgotten`."""
        return message_id in self.entries or message_id in self.forgotten

    def may_have_had(self, lamport: int, message_id: str) -> bool:
        """Return whether `forgotten` may have held and dropped an unknown id.

        If the log is in the order of arrival, the Lamport timestamp does not show
        whether `forgotten` dropped the id, so the result is False.
        """
        horizon = self._ordered_horizon
        return horizon is not None and (lamport, message_id) <= horizon

    @property
    def _ordered_horizon(self) -> tuple[int, str] | None:
        # The Lamport timestamp 0 stands for ids that were never in the log, or were
        # withdrawn. The log dropped none of these.
        if self._by_arrival or self.horizon is None or not self.horizon[0]:
            return None
        return self.horizon

    def last(self, count: int) -> list[HistoryEntry]:
        """Return the last `count` entries of the log, or all if it has fewer."""
        if count < 1:
            return []
        return [self.entries[message_id] for _, message_id in self._order[-count:]]

    def ids(self) -> tuple[str, ...]:
        """Return all ids, in the log's order."""
        return tuple(message_id for _, message_id in self._order)

    def keys(self) -> list[tuple[int, str]]:
        """Return all sort keys, for a snapshot: (timestamp or arrival number, id)."""
        return list(self._order)

    def restore(
        self,
        keys: list[tuple[int, str]],
        entries: list[HistoryEntry],
        forgotten: list[str],
        lamports: list[int] | None,
        horizon: tuple[int, str] | None,
    ) -> None:
        """Restore the log from a snapshot; each list is in the order of the snapshot.

        A snapshot of version 0.14 or earlier lacks the Lamport timestamps of
        `forgotten`, so `lamports` is None. In this case, if `forgotten` is not empty,
        all messages before the log's first entry count as dropped.
        """
        self._order = keys
        for entry in entries:
            self._put(entry)
        if lamports is None:
            first = keys[0] if keys and forgotten else None
            lamports = [0 if first is None else first[0]] * len(forgotten)
            horizon = first
        self.forgotten = dict(zip(forgotten, lamports, strict=True))
        self.horizon = horizon

    def _put(self, entry: HistoryEntry) -> None:
        self.entries[entry.message_id] = entry
        if entry.retrieval_hint:
            self.hintless.discard(entry.message_id)
        else:
            self.hintless.add(entry.message_id)
