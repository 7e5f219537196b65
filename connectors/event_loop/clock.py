"""The clock of participants and reliable channels."""

from __future__ import annotations

import time

_NS_PER_MS = 1_000_000


class SteadyClock:
    """Unix time that never decreases, and never stands still.

    If the system's clock is set back, this clock runs at half its speed until the
    system's clock has caught up with it.
    """

    def __init__(self) -> None:
        self._last_ms = 0
        self._last_ns = time.monotonic_ns()

    def __call__(self) -> int:
        """Return the time, Unix ms."""
        now_ns = time.monotonic_ns()
        steps, rest_ns = divmod(now_ns - self._last_ns, 2 * _NS_PER_MS)
        self._last_ns = now_ns - rest_ns
        wall_ms = time.time_ns() // _NS_PER_MS
        self._last_ms = max(wall_ms, self._last_ms + steps)
        return self._last_ms
