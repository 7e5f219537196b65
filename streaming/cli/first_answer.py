"""Waits for Kafka's first answer, and says so on the board and in the log."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaRefused, KafkaSettings, KafkaUnreachable
from sds_core.observer.freshness import STALE_S, Freshness
from sds_core.text import one_line
from streaming.board import Board
from streaming.cli.output import wall_ms
from streaming.cli.silence import SilenceLog

_FIRST_S = STALE_S + 1
_LATER_S = 10.0
"""Longest waits for an answer, of the first question and of later ones, seconds. When
the first has passed, the silence is long enough to be reported, with its cause."""


def wait_for_kafka(kafka: KafkaSettings, board: Board) -> None:
    """Wait until Kafka answers a question about the topic.

    Meanwhile the board has since when Kafka is asked, and why it does not answer.

    Args:
        kafka: Cluster, topic, and how long to wait.
        board: Its figures of Kafka are empty again at the end.

    Raises:
        connectors.kafka.settings.KafkaUnreachable: No broker answered in time.
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
    # Nothing is asked while Spark starts: that must not look like a silence.
    board.set_job(kafka=Freshness())
