"""Reports in the log that Kafka or the topic is not there, and that it is again."""

from __future__ import annotations

from connectors.web import words
from sds_core.observer.freshness import Freshness, MissingTopic
from streaming.cli.log import logger


class SilenceLog:
    """Logs once when a silence is noticed, and once when it ends.

    The same goes for a topic that does not exist any more.
    """

    def __init__(self) -> None:
        self._silent_since: Freshness | None = None
        self._missing: MissingTopic | None = None

    def observe(self, kafka: Freshness, missing: MissingTopic | None = None) -> None:
        """Take notice of the newest answer, as of now; to be called every second.

        Args:
            kafka: The newest answer.
            missing: The topic if it does not exist.
        """
        self._observe_topic(missing)
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

    def _observe_topic(self, missing: MissingTopic | None) -> None:
        before, self._missing = self._missing, missing
        if before is None and missing is not None:
            logger.warning("%s: %s", words.topic_missing(missing), words.TOPIC_REMEDY)
        elif before is not None and missing is None:
            logger.info("topic %s is there again", before.topic)
