"""One kind of trouble of a mirror, in the log: when it begins, and when it ends."""

from __future__ import annotations

import logging
from collections.abc import Callable

_log = logging.getLogger("sds-monitor")


class Trouble:
    """Remembers since when something fails; each method does nothing if repeated.

    Args:
        now_ms: Wall clock, Unix ms.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._since_ms: int | None = None

    def begins(self, message: object | None = None) -> None:
        """Note the time of the first failure.

        Args:
            message: Warning for the log; None if the caller logs the failure.
        """
        if self._since_ms is not None:
            return
        self._since_ms = self._now_ms()
        if message is not None:
            _log.warning("%s", message)

    def ends(self, message: str, more: str = "") -> None:
        """Log that it works again, and after how long.

        Args:
            message: Beginning of the line, such as "Kafka answers again".
            more: Further facts, for its end.
        """
        if self._since_ms is None:
            return
        # The clock may have been set back meanwhile.
        seconds = max(0, self._now_ms() - self._since_ms) / 1000
        self._since_ms = None
        _log.info("%s after %s s%s", message, f"{seconds:,.0f}", more)
