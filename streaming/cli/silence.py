"""Logs when Kafka or the topic is unavailable, and when it is available again."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaRefused, KafkaSettings, KafkaUnreachable
from connectors.web import words
from sds_core.observer.freshness import STALE_S, Freshness, MissingTopic
from sds_core.text import one_line
from streaming.board import Board
from streaming.cli.log import logger
from streaming.cli.output import wall_ms


class SilenceLog:
    """Logs when Kafka or the topic becomes unavailable, and when it is available again.

    Each change is logged once.
    """

    def __init__(self) -> None:
        self._silent_since: Freshness | None = None
        self._missing: MissingTopic | None = None

    def observe(self, kafka: Freshness, missing: MissingTopic | None = None) -> None:
        """Log if Kafka or the topic has become unavailable, or is available again."""
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
            logger.info("topic %s exists again", before.topic)


_FIRST_S = STALE_S + 1
_LATER_S = 10.0
"""Maximum time of the first and of each later attempt to reach Kafka, seconds.

The first attempt is longer than `STALE_S`. If it fails, Kafka counts as silent, and the
silence is logged.
"""


def wait_for_kafka(kafka: KafkaSettings, board: Board) -> None:
    """Wait until Kafka answers a request about the topic.

    Meanwhile, the board shows that Kafka has not answered yet.

    Raises:
        connectors.kafka.settings.KafkaUnreachable: No broker answered within
            `kafka.timeout_s`.
        connectors.kafka.settings.KafkaRefused: A broker refuses the client.
        connectors.kafka.settings.TopicMissing: The topic does not exist.
    """
    begin_s = time.monotonic()
    question = Freshness(asked_ms=wall_ms(), answered_s=begin_s)
    board.set_job(kafka=question)
    silence = SilenceLog()
    wait_s = min(_FIRST_S, kafka.timeout_s)
    while True:
        try:
            with closing(TopicOffsets(replace(kafka, timeout_s=wait_s))) as offsets:
                offsets.partitions()
        except KafkaRefused:
            raise
        except KafkaUnreachable as error:
            now_s = time.monotonic()
            left_s = begin_s + kafka.timeout_s - now_s
            if left_s <= 0:
                raise
            wait_s = min(_LATER_S, left_s)
            question = replace(question, cause=one_line(str(error)))
            board.set_job(kafka=question)
            silence.observe(question.as_of(now_s))
        else:
            break
    silence.observe(Freshness(wall_ms(), time.monotonic()))
    # While Spark starts, no request is sent to Kafka. The time of the last answer is
    # cleared, because otherwise Kafka would seem to be silent.
    board.set_job(kafka=Freshness())
