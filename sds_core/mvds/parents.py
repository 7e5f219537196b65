"""Tracks which parents a node's messages name, and which messages wait for parents.

Source: 4/MVDS-META. The id of a message does not depend on its metadata, so a node that
forwards the message can change the named parents. If copies name different parents,
only the copy that arrives first counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from sds_core.mvds.payload import Message


def parents_of(message: Message) -> tuple[bytes, ...]:
    """Return the parents that a message names."""
    return message.metadata.parents if message.metadata else ()


class Heads:
    """Heads of groups: delivered messages that no stored message names as a parent."""

    def __init__(self) -> None:
        # Inner dictionaries are used as ordered sets.
        self._heads: dict[bytes, dict[bytes, None]] = {}
        self._named: Counter[bytes] = Counter()

    def newest(self, group_id: bytes, limit: int) -> tuple[bytes, ...]:
        """Return up to `limit` of a group's newest heads, in order of delivery."""
        heads = self._heads.get(group_id, {})
        return tuple(heads)[max(0, len(heads) - limit) :]

    def stored(self, message: Message) -> None:
        """Register a stored message, so that its parents are no longer heads."""
        heads = self._heads.get(message.group_id, {})
        for parent in parents_of(message):
            self._named[parent] += 1
            heads.pop(parent, None)

    def delivered(self, message_id: bytes, group_id: bytes) -> None:
        """Make a delivered message a head, unless it is a stored message's parent."""
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

    def __iter__(self) -> Iterator[bytes]:
        """Yield the ids of all waiting messages, oldest first."""
        return iter(self._missing)

    def __contains__(self, message_id: bytes) -> bool:
        """Return whether a message waits."""
        return message_id in self._missing

    def add(self, message_id: bytes, missing: Iterable[bytes]) -> None:
        """Make a message wait until its missing parents are delivered."""
        self._missing[message_id] = dict.fromkeys(missing)
        for parent in self._missing[message_id]:
            self._children.setdefault(parent, {})[message_id] = None

    def oldest(self) -> bytes:
        """Return the message that has waited longest.

        Call this only if a message waits.
        """
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
        """Return the messages that waited only for `parent`.

        `parent` was delivered, so these messages no longer wait.
        """
        ready = []
        for child in self._children.pop(parent, ()):
            missing = self._missing[child]
            del missing[parent]
            if not missing:
                del self._missing[child]
                ready.append(child)
        return ready
