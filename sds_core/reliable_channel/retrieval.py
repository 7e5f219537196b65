"""Which missing messages to request from a store.

Document, "Missing message retrieval".

SDS knows what is missing; this decides whom to ask for next. A query names at most so
many hashes, and there is one at a time, so stores are not asked without limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

_HASH_BYTES = 32


class Retrieval:
    """Plans queries for missing messages by their retrieval hints.

    Args:
        frequency_ms: `retrieve_frequency_ms`.
        hashes: Most hashes in one query.

    Attributes:
        next_ms: When the next query is due, Unix ms; inf while stopped.
        asked_ms: When each missing message was queried last, by its id, Unix ms; 0 if
            never.
    """

    __slots__ = ("_frequency_ms", "_hashes", "asked_ms", "next_ms")

    def __init__(self, frequency_ms: int, hashes: int) -> None:
        self._frequency_ms = frequency_ms
        self._hashes = hashes
        self.asked_ms: dict[str, int] = {}
        self.next_ms: float = inf

    def start(self, now_ms: int) -> None:
        """Begin the interval."""
        self.next_ms = now_ms + self._frequency_ms

    def stop(self) -> None:
        """Plan no more queries."""
        self.next_ms = inf

    def take_due(
        self, missing: Mapping[str, Iterable[bytes]], now_ms: int
    ) -> tuple[bytes, ...]:
        """Return the hashes to query now, those not queried for longest first.

        Args:
            missing: The hints of what SDS misses, newest first, in order of the first
                naming. A message without a hint of 32 bytes cannot be queried: it may
                come by SDS-R.
            now_ms: Unix ms.
        """
        self.next_ms = now_ms + self._frequency_ms
        hashes = {
            message_id: usable
            for message_id, hints in missing.items()
            if (usable := [hint for hint in hints if len(hint) == _HASH_BYTES])
        }
        # What is no longer missing is forgotten, so this is no longer than the hashes.
        asked_ms = {key: self.asked_ms.get(key, 0) for key in hashes}
        chosen: dict[bytes, None] = {}
        for message_id in sorted(hashes, key=asked_ms.__getitem__):
            more = chosen | dict.fromkeys(hashes[message_id])
            if chosen and len(more) > self._hashes:
                break
            chosen = more
            asked_ms[message_id] = now_ms
        self.asked_ms = asked_ms
        return tuple(chosen)[: self._hashes]
