"""The earliest deadline of a buffer."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf


class HasDeadline:
    """Base of buffers: their earliest deadline, computed only after a change."""

    __slots__ = ("_next_ms", "_stale")

    def __init__(self) -> None:
        self._next_ms: float = inf
        self._stale = False

    @property
    def next_ms(self) -> float:
        """When the next entry is due, Unix ms; inf without a deadline."""
        if self._stale:
            self._stale = False
            self._next_ms = min(self._times_ms(), default=inf)
        return self._next_ms

    def _times_ms(self) -> Iterable[float]:
        """Return when each entry is due; a buffer sets `_stale` when this changes."""
        raise NotImplementedError
