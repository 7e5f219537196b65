"""Reports in the log that Kafka does not answer, and that it answers again."""

from __future__ import annotations

from connectors.web import words
from sds_core.observer.freshness import Freshness
from streaming.cli.log import logger


class SilenceLog:
    """Logs once when a silence is noticed, and once when it ends."""

    def __init__(self) -> None:
        self._silent_since: Freshness | None = None

    def observe(self, kafka: Freshness) -> None:
        """Take notice of the newest answer, as of now; to be called every second."""
        before = self._silent_since
        if kafka.is_stale and before is None:
            self._silent_since = kafka
            why = f": {kafka.cause}" if kafka.cause else ""
            logger.warning("%s%s", words.no_answer(kafka), why)
        elif before is not None and kafka.answered_s > before.answered_s:
            self._silent_since = None
            silent_s = kafka.answered_s - before.answered_s
            again = "" if before.is_awaited else " again"
            logger.info("Kafka answers%s after %s s", again, f"{silent_s:,.0f}")
