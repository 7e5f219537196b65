"""How long a participant was off between a snapshot and its restart."""

from __future__ import annotations


class Uptime:
    """The time of the last call, from which a restart tells how long it was off.

    Attributes:
        last_ms: Time of the last call or snapshot, Unix ms; None if a snapshot of an
            older version does not have it.
    """

    __slots__ = ("_is_resuming", "last_ms")

    def __init__(self, last_ms: int | None, *, is_resuming: bool = False) -> None:
        self._is_resuming = is_resuming
        self.last_ms = last_ms

    def at(self, now_ms: int) -> int:
        """Record a call, and return how long the participant was off before it, ms.

        0 except at the first call after a restart.
        """
        off_ms = 0
        if self._is_resuming:
            self._is_resuming = False
            off_ms = now_ms - (now_ms if self.last_ms is None else self.last_ms)
        self.last_ms = now_ms
        return max(0, off_ms)
