"""How long a participant was off between a snapshot and its restart."""

from __future__ import annotations


class Uptime:
    """The time of the last call, from which a restart tells how long it was off.

    Attributes:
        last_ms: Time of the last call or snapshot, Unix ms; None if a snapshot of an
            older version does not have it. After a restore from change records, that
            of the last change.
        is_resuming: Whether the next call is the first one after a restart.
    """

    __slots__ = ("is_resuming", "last_ms")

    def __init__(self, last_ms: int | None) -> None:
        self.last_ms = last_ms
        self.is_resuming = False

    def off_ms(self, now_ms: int) -> int:
        """Return the time since the last call, ms; 0 if it is unknown."""
        return 0 if self.last_ms is None else max(0, now_ms - self.last_ms)
