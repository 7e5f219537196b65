"""Messages that wait for what they depend on, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from sds_core.message_channel.profile import Profile
from sds_core.wire import Frame, HistoryEntry


class MissingDependency(NamedTuple):
    """An id that was named and never received.

    Attributes:
        entry: as the causal history said.
        since_ms: when it was first noticed, Unix ms.
    """

    entry: HistoryEntry
    since_ms: int


class Waiting:
    """A message in the incoming buffer.

    Attributes:
        frame: the message.
        value: its bytes.
        retrieval_hint: of the message, empty if unknown.
        arrived_ms: Unix ms.
        unmet: ids that it waits for.
    """

    __slots__ = ("arrived_ms", "frame", "retrieval_hint", "unmet", "value")

    def __init__(
        self,
        frame: Frame,
        value: bytes,
        retrieval_hint: bytes,
        arrived_ms: int,
        unmet: set[str],
    ) -> None:
        self.frame = frame
        self.value = value
        self.retrieval_hint = retrieval_hint
        self.arrived_ms = arrived_ms
        self.unmet = unmet


class IncomingBuffer:
    """Messages with unmet causal dependencies, and the dependencies themselves.

    Attributes:
        waiting: messages by id, in order of arrival.
        missing: what was named and never received, in order of noticing.
        look_ms: when to look for messages that wait for each other, Unix ms.
        lost: ids that are waited for no longer; dependencies on them count as met.
    """

    __slots__ = (
        "_lost_after_ms",
        "_lost_limit",
        "_waiters",
        "look_ms",
        "lost",
        "missing",
        "waiting",
    )

    def __init__(self, profile: Profile) -> None:
        self._lost_after_ms = profile.lost_after_ms
        self._lost_limit = profile.missing_limit
        self.waiting: dict[str, Waiting] = {}
        self.missing: dict[str, MissingDependency] = {}
        self.lost: dict[str, None] = {}
        self.look_ms: float = inf
        self._waiters: dict[str, list[str]] = {}

    @property
    def next_ms(self) -> float:
        """When the next wait runs out, Unix ms; inf if none does."""
        if self._lost_after_ms is None:
            return inf
        for dependency in self.missing.values():
            return min(self.look_ms, dependency.since_ms + self._lost_after_ms)
        return self.look_ms

    def knows(self, message_id: str) -> bool:
        """Tell whether an id is that of a message here, or of one waited for."""
        return (
            message_id in self.waiting
            or message_id in self.missing
            or message_id in self.lost
        )

    def hold(self, message_id: str, message: Waiting) -> None:
        """Put a message in."""
        self.waiting[message_id] = message
        if self._lost_after_ms is not None:
            self.look_ms = min(self.look_ms, message.arrived_ms + self._lost_after_ms)
        for dependency in message.unmet:
            self._waiters.setdefault(dependency, []).append(message_id)

    def arrived(self, message_id: str) -> None:
        """Note that a message came, whatever it was before."""
        self.missing.pop(message_id, None)
        self.lost.pop(message_id, None)

    def met(self, dependency: str) -> Iterator[tuple[str, Waiting]]:
        """Take out and give the messages that waited for this dependency alone."""
        for message_id in self._waiters.pop(dependency, ()):
            message = self.waiting.get(message_id)
            if message is None:
                continue
            message.unmet.discard(dependency)
            if not message.unmet:
                del self.waiting[message_id]
                yield message_id, message

    def overdue(self, now_ms: int) -> list[str]:
        """Return what is missing for longer than is waited."""
        if self._lost_after_ms is None:
            return []
        latest_ms = now_ms - self._lost_after_ms
        return [
            message_id
            for message_id, dependency in self.missing.items()
            if dependency.since_ms <= latest_ms
        ]

    def stuck(self, now_ms: int) -> list[str]:
        """Return what waited too long, and for nothing that is missing.

        Messages that name each other in a circle would wait for ever. They are given
        in the log's order, which is the order to deliver them in if their timestamps
        are true.
        """
        if self._lost_after_ms is None:
            return []
        latest_ms = now_ms - self._lost_after_ms
        # What waits for something missing is looked at again when that is lost.
        later_ms = (
            message.arrived_ms
            for message in self.waiting.values()
            if message.arrived_ms > latest_ms
        )
        self.look_ms = min(later_ms, default=inf) + self._lost_after_ms
        held_up = self._held_up()
        return self._in_order(
            message_id
            for message_id, message in self.waiting.items()
            if message.arrived_ms <= latest_ms and message_id not in held_up
        )

    def needed_by(self, message_id: str) -> list[str]:
        """Return a waiting message and all that it waits for, here or missing.

        In the order of finding; no chain is too long, no circle endless.
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
        """Return those that are waiting, in the log's order."""
        return self._in_order(one for one in message_ids if one in self.waiting)

    def give_up(self, message_id: str) -> HistoryEntry:
        """Count a missing id as lost from now on."""
        entry = self.missing.pop(message_id).entry
        self.lost[message_id] = None
        if len(self.lost) > self._lost_limit:
            del self.lost[next(iter(self.lost))]
        return entry

    def restore(
        self,
        waiting: Iterable[tuple[str, Waiting]],
        missing: Iterable[MissingDependency],
        lost: Iterable[str],
        look_ms: float,
    ) -> None:
        """Take over a kept state, each in its order."""
        for message_id, message in waiting:
            self.hold(message_id, message)
        self.missing = {one.entry.message_id: one for one in missing}
        self.lost = dict.fromkeys(lost)
        self.look_ms = look_ms

    def _in_order(self, message_ids: Iterable[str]) -> list[str]:
        return sorted(
            message_ids, key=lambda one: (self.waiting[one].frame.lamport or 0, one)
        )

    def _held_up(self) -> set[str]:
        """Return what waits for something missing, or for what does."""
        found: set[str] = set()
        todo = list(self.missing)
        while todo:
            for message_id in self._waiters.get(todo.pop(), ()):
                if message_id in self.waiting and message_id not in found:
                    found.add(message_id)
                    todo.append(message_id)
        return found
