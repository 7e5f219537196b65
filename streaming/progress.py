"""The job's own figures, from Spark's progress and the topic's offsets."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaRefused, KafkaUnreachable
from sds_core.observer.histogram import Histogram
from sds_core.observer.record import is_future
from streaming.board import Board
from streaming.clock_check import ClockCheck
from streaming.findings import Findings
from streaming.position import Position

_log = logging.getLogger("sds-monitor")


class Progress:
    """Measures one query, and commits its offsets to the consumer group.

    While no broker answers, lag and records behind keep their last values; the query
    fails if that lasts.

    Args:
        board: Gets the figures.
        offsets: Reads and commits offsets of the topic. The job cannot be ended while
            it waits for Kafka, so its timeout should be short.
        group: Consumer group; None for no commits.
        position: End of the checkpoint's newest batch; None without a batch.
        findings: Has the rows that wait for the history; None without a history.

    Attributes:
        position: End of the newest batch; None before the first.
        fired_ms: Event time, Unix ms, before which every deadline has fired.
    """

    def __init__(
        self,
        board: Board,
        offsets: TopicOffsets,
        group: str | None,
        position: Position | None = None,
        findings: Findings | None = None,
    ) -> None:
        self._board = board
        self._offsets = offsets
        self._group = group
        self._findings = findings
        self._clock = ClockCheck(offsets.broker_time_ms, _wall_ms, time.monotonic)
        self._durations = Histogram()
        self._last_trigger: tuple[int, str] = (-1, "")
        self._committed: dict[int, int] = {}
        self.position = position
        self.fired_ms = 0

    def update(self, query: StreamingQuery) -> None:
        """Publish the figures of all batches since the last call, and the lag.

        Raises:
            connectors.kafka.settings.KafkaRefused: A broker refuses the client.
            connectors.kafka.settings.TopicMissing: The topic does not exist any more.
        """
        for progress in self._new_batches(query):
            self._durations.observe(progress["durationMs"].get("triggerExecution", 0))
            end = progress["sources"][0]["endOffset"]
            if end is not None:
                position = Position.from_json(
                    json.loads(end) if isinstance(end, str) else end
                )
                _warn_of_another_topic(self.position, position)
                self.position = position
            self.fired_ms = _watermark_ms(progress) + 1
            operators = progress["stateOperators"]
            state_bytes = sum(operator["memoryUsedBytes"] for operator in operators)
            self._board.set_job(
                batch_duration=self._durations.copy(), state_bytes=state_bytes
            )
        if self._findings is not None:
            self._board.set_job(history_pending=self._findings.count_pending())
        self._board.set_job(running=query.isActive)
        if self.position is not None:
            self._board.set_position(self.position)
        try:
            if self.position is not None:
                self._measure(self.position)
            self._clock.compare()
        except KafkaRefused:
            raise
        except KafkaUnreachable:
            # The query waits for Kafka too, and fails if it waits too long.
            pass
        self._board.set_job(clock=self._clock.figures)

    def _new_batches(self, query: StreamingQuery) -> Sequence[dict[str, Any]]:
        found = [json.loads(progress.json) for progress in query.recentProgress]
        new = [p for p in found if (p["batchId"], p["timestamp"]) > self._last_trigger]
        if new:
            self._last_trigger = (new[-1]["batchId"], new[-1]["timestamp"])
        # Spark also reports triggers that found nothing to do.
        return [p for p in new if "addBatch" in p["durationMs"]]

    def _measure(self, position: Position) -> None:
        partitions = list(position.partitions)
        ends = self._offsets.latest(partitions)
        newest = self._offsets.newest(partitions)
        here = position.next_offsets()
        behind = {p: max(0, ends[p] - offset) for p, offset in here.items()}
        # A record from the future does not move the clock, so it makes no lag.
        now_ms = _wall_ms()
        times = [at.timestamp_ms for at in newest.values()]
        newest_ms = max((ms for ms in times if not is_future(ms, now_ms)), default=0)
        lag_s = max(0, newest_ms - position.clock_ms) / 1000
        self._board.set_job(
            records_behind=sum(behind.values()),
            # Before the first record there is no clock to measure from.
            event_time_lag_seconds=lag_s if position.clock_ms else None,
        )
        self._clock.observe(newest)
        if self._group is not None and here != self._committed:
            self._offsets.commit(self._group, here)
            self._committed = here


def _warn_of_another_topic(before: Position | None, after: Position) -> None:
    if before is None or before.topic_id in (None, after.topic_id):
        return
    _log.warning(
        "the topic was deleted and made anew: the job goes on at its start, and at "
        "least %s records are lost",
        f"{after.skipped - before.skipped:,}",
    )


def _watermark_ms(progress: dict[str, Any]) -> int:
    """The watermark with which a batch fired deadlines, Unix ms."""
    text = progress.get("eventTime", {}).get("watermark", "1970-01-01T00:00:00.000Z")
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
