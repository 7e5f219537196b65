"""The job's own figures, from Spark's progress and the topic's offsets."""

from __future__ import annotations

import json
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
from streaming.outbox import Outbox
from streaming.position import Position

"""Consumer group to which offsets are committed, so that lag tools see the job."""


class Progress:
    """Follows one query; called now and then by whoever waits for it.

    Offsets are committed to the consumer group, if one is given. What waits in the
    outbox is counted, if there is one. While no broker answers, what the offsets would
    tell stays as it was: the query itself ends if that lasts.

    Args:
        board: Gets the figures.
        offsets: Of the topic. Nothing can end while they are waited for, so let their
            settings be impatient.
        group: Consumer group; None for no commits.
        position: Where the checkpoint's newest batch ended; None if there is none.
        outbox: What waits for the history; None without one.

    Attributes:
        position: Where the newest batch ended; None before the first.
        fired_ms: Every deadline before this event time has fired, Unix ms.
    """

    def __init__(
        self,
        board: Board,
        offsets: TopicOffsets,
        group: str | None,
        position: Position | None = None,
        outbox: Outbox | None = None,
    ) -> None:
        self._board = board
        self._offsets = offsets
        self._group = group
        self._outbox = outbox
        self._durations = Histogram()
        self._last_seen: tuple[int, str] = (-1, "")
        self._committed: dict[int, int] = {}
        self.position = position
        self.fired_ms = 0

    def update(self, query: StreamingQuery) -> None:
        """Take over all batches since the last call, and measure the lag.

        Raises:
            connectors.kafka.settings.KafkaRefused: A broker will not have us.
            connectors.kafka.settings.TopicMissing: The topic is gone.
        """
        for progress in self._unseen(query):
            self._durations.observe(progress["durationMs"].get("triggerExecution", 0))
            end = progress["sources"][0]["endOffset"]
            if end is not None:
                self.position = Position.from_json(
                    json.loads(end) if isinstance(end, str) else end
                )
            self.fired_ms = _watermark_ms(progress) + 1
            operators = progress["stateOperators"]
            state_bytes = sum(operator["memoryUsedBytes"] for operator in operators)
            self._board.set_job(
                batch_duration=self._durations.copy(), state_bytes=state_bytes
            )
        if self._outbox is not None:
            self._board.set_job(history_pending=len(self._outbox))
        self._board.set_job(running=query.isActive)
        if self.position is not None:
            self._show(self.position)

    def _unseen(self, query: StreamingQuery) -> Sequence[dict[str, Any]]:
        found = [json.loads(progress.json) for progress in query.recentProgress]
        fresh = [p for p in found if (p["batchId"], p["timestamp"]) > self._last_seen]
        if fresh:
            self._last_seen = (fresh[-1]["batchId"], fresh[-1]["timestamp"])
        # Spark also reports triggers that found nothing to do.
        return [p for p in fresh if "addBatch" in p["durationMs"]]

    def _show(self, position: Position) -> None:
        self._board.set_position(position)
        try:
            self._measure(position)
        except KafkaRefused:
            raise
        except KafkaUnreachable:
            # The query waits for Kafka as well, and says so when it gives up.
            pass

    def _measure(self, position: Position) -> None:
        partitions = list(position.partitions)
        ends = self._offsets.latest(partitions)
        newest = self._offsets.newest(partitions)
        here = position.next_offsets()
        behind = {p: max(0, ends[p] - offset) for p, offset in here.items()}
        # A record from the future moves no clock: the job is not behind it.
        now_ms = time.time_ns() // 1_000_000
        times = [at.timestamp_ms for at in newest.values()]
        newest_ms = max((ms for ms in times if not is_future(ms, now_ms)), default=0)
        lag_s = max(0, newest_ms - position.clock_ms) / 1000
        self._board.set_job(
            records_behind=sum(behind.values()),
            # Before the first record there is no clock to be behind.
            event_time_lag_seconds=lag_s if position.clock_ms else None,
        )
        if self._group is not None and here != self._committed:
            self._offsets.commit(self._group, here)
            self._committed = here


def _watermark_ms(progress: dict[str, Any]) -> int:
    """The watermark by which a batch fired deadlines, Unix ms."""
    text = progress.get("eventTime", {}).get("watermark", "1970-01-01T00:00:00.000Z")
    return round(datetime.fromisoformat(text).timestamp() * 1000)
