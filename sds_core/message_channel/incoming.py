"""The incoming buffer: messages that wait for dependencies, and missing messages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from sds_core.message_channel.profile import Profile
from sds_core.message_channel.sized_dict import SizedDict
from sds_core.wire import Frame, HistoryEntry

HINTS_KEPT = 3
"""Maximum number of retrieval hints that are kept for a missing message.

Each broadcast of a message has its own hint. A store may lack some of the broadcasts,
so a query with only the newest hint may find nothing.
"""


class MissingDependency(NamedTuple):
    """A message that has not arrived, although a received causal history names it.

    Attributes:
        entry: The message's id, its sender (empty if unknown), and its newest retrieval
            hint.
        since_ms: When a received causal history first named the message, Unix ms. After
            a restart, the time for which the participant was off is added.
        is_awaited: Whether messages wait for this message. False after a full buffer
            has delivered a message that waited for it.
    """

    entry: HistoryEntry
    since_ms: int
    older_hints: tuple[bytes, ...] = ()
    is_awaited: bool = True

    @property
    def hints(self) -> tuple[bytes, ...]:
        """The message's retrieval hints, newest first."""
        newest = self.entry.retrieval_hint
        return (newest, *self.older_hints) if newest else ()


@dataclass(eq=False, slots=True)
class Waiting:
    """A content message that arrived, but is not delivered yet.

    Attributes:
        unmet: Ids of the dependencies that the message waits for.
    """

    frame: Frame
    value: bytes
    retrieval_hint: bytes
    arrived_ms: int
    unmet: set[str]

    @property
    def place(self) -> tuple[int, str]:
        """The message's sort key: Lamport timestamp and id."""
        return self.frame.lamport or 0, self.frame.message_id


class IncomingBuffer:
    """Messages with unmet causal dependencies, and the missing dependencies.

    Attributes:
        waiting: Messages that wait for dependencies, by id, in order of arrival.
        missing: Missing messages by id, in the order in which causal histories first
            named them.
        circles_due_ms: When `stuck` must be called next, Unix ms.
        lost: Ids of messages that were missing for too long; a dependency on a lost
            message counts as met.
    """

    def __init__(self, profile: Profile) -> None:
        lost_after_ms = profile.lost_after_ms
        self._lost_after_ms = inf if lost_after_ms is None else lost_after_ms
        self._lost_limit = profile.missing_limit
        self.waiting: SizedDict[Waiting] = SizedDict(lambda one: len(one.value))
        # An OrderedDict finds its first entry in constant time. A plain dict becomes
        # slower each time its first entry is removed.
        self.missing: OrderedDict[str, MissingDependency] = OrderedDict()
        self.lost: OrderedDict[str, None] = OrderedDict()
        self.circles_due_ms: float = inf
        self.received = 0
        self._waiters: dict[str, list[str]] = {}

    @property
    def next_ms(self) -> float:
        """When `overdue` or `stuck` must be called next, Unix ms; inf if never."""
        if not self.missing:
            return self.circles_due_ms
        first = next(iter(self.missing.values()))
        return min(self.circles_due_ms, first.since_ms + self._lost_after_ms)

    def knows(self, message_id: str) -> bool:
        """Return whether an id belongs to a waiting, missing or lost message."""
        return message_id in self.waiting or self.lacks(message_id)

    def lacks(self, message_id: str) -> bool:
        """Return whether an id belongs to a missing or lost message."""
        return message_id in self.missing or message_id in self.lost

    def hold(self, message_id: str, message: Waiting) -> None:
        """Put a message in."""
        self.waiting[message_id] = message
        due_ms = message.arrived_ms + self._lost_after_ms
        self.circles_due_ms = min(self.circles_due_ms, due_ms)
        for dependency in message.unmet:
            self._waiters.setdefault(dependency, []).append(message_id)

    def learn(self, entry: HistoryEntry) -> HistoryEntry | None:
        """Update a missing message's entry with the hint and sender of `entry`.

        A known sender is never replaced, because a hostile participant may name a
        wrong sender. Returns the updated entry; None if nothing changed.
        """
        missing = self.missing[entry.message_id]
        known = missing.entry
        hint = entry.retrieval_hint
        completed = HistoryEntry(
            entry.message_id,
            hint or known.retrieval_hint,
            known.sender_id or entry.sender_id,
        )
        if completed == known:
            return None
        older = missing.hints
        if hint:
            older = tuple(one for one in older if one != hint)[: HINTS_KEPT - 1]
        else:
            older = older[1:]
        self.missing[entry.message_id] = missing._replace(
            entry=completed, older_hints=older
        )
        return completed

    def learn_hint(self, message_id: str, hint: bytes) -> None:
        """If a waiting message has no retrieval hint yet, store the hint."""
        message = self.waiting.get(message_id)
        if message is not None and not message.retrieval_hint:
            message.retrieval_hint = hint

    def arrived(self, message_id: str) -> None:
        """Count an arrived message, and record that it is neither missing nor lost."""
        self.received += 1
        self.is_had(message_id)

    def is_had(self, message_id: str) -> None:
        """Remove a message from the missing and the lost messages."""
        self.missing.pop(message_id, None)
        self.lost.pop(message_id, None)

    def met(self, dependency: str) -> Iterator[Waiting]:
        """Mark a dependency as met; remove and yield messages that no longer wait."""
        for message_id in self._waiters.pop(dependency, ()):
            message = self.waiting.get(message_id)
            if message is None:
                continue
            message.unmet.discard(dependency)
            if not message.unmet:
                del self.waiting[message_id]
                yield message

    def overdue(self, now_ms: int) -> list[str]:
        """Return the ids of messages that have been missing for too long."""
        if self._lost_after_ms == inf:
            return []
        latest_ms = now_ms - self._lost_after_ms
        return [
            message_id
            for message_id, dependency in self.missing.items()
            if dependency.since_ms <= latest_ms
        ]

    def stuck(self, now_ms: int) -> list[str]:
        """Return ids of messages that waited too long and depend on no missing message.

        Such messages depend on each other in a circle, so they would wait forever. The
        result is in ascending order of Lamport timestamp and id.
        """
        if self._lost_after_ms == inf:
            return []
        latest_ms = now_ms - self._lost_after_ms
        later_ms = (
            message.arrived_ms
            for message in self.waiting.values()
            if message.arrived_ms > latest_ms
        )
        self.circles_due_ms = min(later_ms, default=inf) + self._lost_after_ms
        held_up = self._held_up()
        return self._in_order(
            message_id
            for message_id, message in self.waiting.items()
            if message.arrived_ms <= latest_ms and message_id not in held_up
        )

    def needed_by(self, message_id: str) -> list[str]:
        """Return the ids of a waiting message and of its unmet dependencies.

        The result also contains the unmet dependencies of these dependencies, and so
        on.
        """
        found = {message_id: None}
        todo = [message_id]
        while todo:
            message = self.waiting.get(todo.pop())
            if message is not None:
                new = sorted(message.unmet - found.keys())
                found.update(dict.fromkeys(new))
                todo += new
        return list(found)

    def waiting_of(self, message_ids: Iterable[str]) -> list[str]:
        """Return the given ids of waiting messages, by Lamport timestamp and id."""
        return self._in_order(one for one in message_ids if one in self.waiting)

    def no_longer_awaited(self, message_ids: Iterable[str]) -> list[str]:
        """Mark those of the given messages that are missing; return their ids.

        They stay missing, but messages no longer wait for them.
        """
        found = [one for one in message_ids if one in self.missing]
        for one in found:
            self.missing[one] = self.missing[one]._replace(is_awaited=False)
        return found

    def give_up(self, message_id: str) -> HistoryEntry:
        """Mark a missing message as lost, and return its history entry."""
        entry = self.missing.pop(message_id).entry
        self.lost[message_id] = None
        if len(self.lost) > self._lost_limit:
            self.lost.popitem(last=False)
        return entry

    def put_off(self, by_ms: int) -> None:
        """Extend all waits by `by_ms`, the time for which the participant was off."""
        self.missing.update(
            {
                message_id: dependency._replace(since_ms=dependency.since_ms + by_ms)
                for message_id, dependency in self.missing.items()
            }
        )
        for message in self.waiting.values():
            message.arrived_ms += by_ms
        self.circles_due_ms += by_ms

    def restore(
        self,
        waiting: Iterable[tuple[str, Waiting]],
        missing: Iterable[MissingDependency],
        lost: Iterable[str],
        circles_due_ms: float,
    ) -> None:
        """Restore the buffer from a snapshot; iterables are in the buffer's order."""
        for message_id, message in waiting:
            self.hold(message_id, message)
        self.missing.update((one.entry.message_id, one) for one in missing)
        self.lost.update(dict.fromkeys(lost))
        if self._lost_after_ms < inf:
            self.circles_due_ms = circles_due_ms

    def _in_order(self, message_ids: Iterable[str]) -> list[str]:
        return sorted(message_ids, key=lambda one: self.waiting[one].place)

    def _held_up(self) -> set[str]:
        found: set[str] = set()
        todo = list(self.missing)
        while todo:
            for message_id in self._waiters.get(todo.pop(), ()):
                if message_id in self.waiting and message_id not in found:
                    found.add(message_id)
                    todo.append(message_id)
        return found
