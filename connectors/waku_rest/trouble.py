"""One kind of trouble of a mirror, in the log: when it begins, and when it ends."""

from __future__ import annotations

import logging
from collections.abc import Callable

_log = logging.getLogger("sds-monitor")


class Trouble:
    """Remembers since when something fails; each method does nothing if repeated."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._since_ms: int | None = None
        self._until_ms: int | None = None

    @property
    def is_on(self) -> bool:
        """Whether it has begun and its end is not logged."""
        return self._since_ms is not None

    @property
    def is_passing(self) -> bool:
        """Whether it works again, and the end is not logged."""
        return self._until_ms is not None

    def begins(self, message: object | None = None) -> None:
        """Note the time of the first failure; a message is logged as a warning."""
        self._until_ms = None
        if self._since_ms is not None:
            return
        self._since_ms = self._now_ms()
        if message is not None:
            _log.warning("%s", message)

    def passes(self) -> None:
        """Note the time at which it works again, if the end is logged later."""
        if self.is_on and not self.is_passing:
            self._until_ms = self._now_ms()

    def ends(self, message: str, more: str = "") -> None:
        """Log that it works again, and after how long; `more` are further facts."""
        if self._since_ms is None:
            return
        until_ms = self._now_ms() if self._until_ms is None else self._until_ms
        # The clock may have been set back meanwhile.
        seconds = max(0, until_ms - self._since_ms) / 1000
        self._since_ms = self._until_ms = None
        _log.info("%s after %s s%s", message, f"{seconds:,.0f}", more)
