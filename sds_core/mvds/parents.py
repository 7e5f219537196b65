"""Tracks which parents our next message names, and which messages wait for parents.

Source: 4/MVDS-META. Metadata is not part of a message's id, so a node that forwards a
message can change its parents. Only the parents in the first received copy count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sds_core.mvds.payload import Message


def parents_of(message: Message) -> tuple[bytes, ...]:
    """Return the parents that a message names."""
    return message.metadata.parents if message.metadata else ()


class Heads:
    """For each group, delivered messages that no stored message names as a parent."""

    def __init__(self) -> None:
        # Inner dictionaries are used as ordered sets.
        self._heads: dict[bytes, dict[bytes, None]] = {}
        self._named: Counter[bytes] = Counter()

    def newest(self, group_id: bytes, limit: int) -> tuple[bytes, ...]:
        """Return the newest heads of a group, at most `limit`; the oldest is first."""
        heads = self._heads.get(group_id, {})
        return tuple(heads)[max(0, len(heads) - limit) :]

    def stored(self, message: Message) -> None:
        """Record a stored message: its parents are no longer heads."""
        heads = self._heads.get(message.group_id, {})
        for parent in parents_of(message):
            self._named[parent] += 1
            heads.pop(parent, None)

    def delivered(self, message_id: bytes, group_id: bytes) -> None:
        """Record a delivered message: it is a head if no stored message names it."""
        if message_id not in self._named:
            self._heads.setdefault(group_id, {})[message_id] = None

    def dropped(self, message_id: bytes, message: Message) -> None:
        """Remove a dropped message; its parents do not become heads again."""
        self._heads.get(message.group_id, {}).pop(message_id, None)
        for parent in parents_of(message):
            self._named[parent] -= 1
            if not self._named[parent]:
                del self._named[parent]


class WaitingMessages:
    """Messages that wait for the delivery of their parents, oldest first."""

    def __init__(self) -> None:
        self._missing: dict[bytes, dict[bytes, None]] = {}
        self._children: dict[bytes, dict[bytes, None]] = {}

    def __len__(self) -> int:
        """Return the number of waiting messages."""
        return len(self._missing)

    def __contains__(self, message_id: bytes) -> bool:
        """Return whether a message waits."""
        return message_id in self._missing

    def add(self, message_id: bytes, missing: Iterable[bytes]) -> None:
        """Make a message wait for its parents."""
        self._missing[message_id] = dict.fromkeys(missing)
        for parent in self._missing[message_id]:
            self._children.setdefault(parent, {})[message_id] = None

    def oldest(self) -> bytes:
        """Return the message that has waited longest; at least one must wait."""
        return next(iter(self._missing))

    def remove(self, message_id: bytes) -> tuple[bytes, ...]:
        """Remove a message; return the parents for which it still waited."""
        missing = tuple(self._missing.pop(message_id))
        for parent in missing:
            children = self._children[parent]
            del children[message_id]
            if not children:
                del self._children[parent]
        return missing

    def delivered(self, parent: bytes) -> list[bytes]:
        """Record a delivered parent; return the messages that waited only for it."""
        ready = []
        for child in self._children.pop(parent, ()):
            missing = self._missing[child]
            del missing[parent]
            if not missing:
                del self._missing[child]
                ready.append(child)
        return ready
