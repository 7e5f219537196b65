"""Caches of messages that wait until a client reads them.

Source: logos-delivery rest_api/message_cache.nim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sds_core.waku import WakuMessage

FILTER_CAPACITY = 50


@dataclass(frozen=True)
class Entry:
    """A message on a pubsub topic, with its hash of 32 bytes."""

    hash: bytes
    pubsub_topic: str
    message: WakuMessage


class Cache:
    """Messages of all topics, each once, up to a capacity."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: dict[WakuMessage, Entry] = {}

    def __iter__(self) -> Iterator[Entry]:
        """All entries, the first added first."""
        return iter(self._entries.values())

    def add(self, entry: Entry) -> Entry | None:
        """Add a message and return the one that had to go for it, if one had."""
        if entry.message in self._entries:
            return None
        evicted = None
        if len(self._entries) >= self._capacity:
            oldest = min(self._entries, key=lambda one: one.timestamp_ns)
            evicted = self._entries.pop(oldest)
        self._entries[entry.message] = entry
        return evicted

    def take(self, wanted: Callable[[Entry], bool] = lambda _: True) -> list[Entry]:
        """Remove messages and return them."""
        taken = [one for one in self if wanted(one)]
        for one in taken:
            del self._entries[one.message]
        return taken
