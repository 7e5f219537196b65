"""The job's own figures, from Spark's progress reports and the topic's offsets."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from connectors.kafka.offsets import find_replaced
from streaming.board import Board
from streaming.position import Position
from streaming.topic_watch import TopicWatch

_log = logging.getLogger("sds-monitor")

_COUNTING_RATIO = 100
"""After a count of the rows that wait for the history, the next count is delayed.

The delay is the duration of the count, multiplied by this number.
"""


class Progress:
    """Measures one query, and passes its position to the `TopicWatch`.

    Attributes:
        position: End of the newest batch; None before the first batch.
        fired_ms: Event time, Unix ms. Every earlier deadline has fired.
        batches: Batches that this query has finished.
        works: Whether the query finished a batch between the last two updates, or
            waited for new records at the last update. While the query waits for an
            answer from Kafka, the value is False.
    """

    def __init__(
        self,
        board: Board,
        watch: TopicWatch,
        position: Position | None,
        pending: Callable[[], int],
        stalled_s: Callable[[], float],
    ) -> None:
        self._board = board
        self._watch = watch
        self._pending = pending
        self._stalled_s = stalled_s
        self._pending_due_s = 0.0
        # These durations include batches of earlier queries of this process.
        self._durations = board.snapshot.job.batch_duration.copy()
        self._last_trigger: tuple[int, str] = (-1, "")
        self.position = position
        self.fired_ms = 0
        self.batches = 0
        self.works = False

    def update(self, query: StreamingQuery) -> None:
        """Publish figures of all batches that ended since the last call, and the lag.

        Raises:
            connectors.kafka.settings.KafkaRefused: A broker refuses the client.
        """
        finished = self._new_batches(query)
        self.works = bool(finished) or _waits_for_records(query)
        for progress in finished:
            self.batches += 1
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
        begun_s = time.monotonic()
        if begun_s >= self._pending_due_s:
            self._board.set_job(history_pending=self._pending())
            ended_s = time.monotonic()
            # A count of a million rows takes 60 ms, because SQLite counts one by one.
            # The longer a count takes, the later is the next count.
            self._pending_due_s = ended_s + _COUNTING_RATIO * (ended_s - begun_s)
        self._board.set_job(
            running=query.isActive, history_stalled_seconds=self._stalled_s()
        )
        if self.position is not None:
            self._board.set_position(self.position)
        self._watch.follow(self.position)
        self._watch.check()

    def _new_batches(self, query: StreamingQuery) -> Sequence[dict[str, Any]]:
        new: list[dict[str, Any]] = []
        for progress in newest_first(query):
            trigger = progress["batchId"], progress["timestamp"]
            # The wall clock may have been set back, so a report with an earlier time
            # may still be new.
            if trigger == self._last_trigger or trigger[0] < self._last_trigger[0]:
                break
            new.append(progress)
        if new:
            self._last_trigger = (new[0]["batchId"], new[0]["timestamp"])
        # Spark also reports triggers that processed no batch.
        return [p for p in reversed(new) if "addBatch" in p["durationMs"]]


def newest_first(query: StreamingQuery) -> Iterator[dict[str, Any]]:
    """Yield Spark's reports on triggers, the newest first.

    `StreamingQuery.recentProgress` would call the JVM about a hundred times for each
    report.
    """
    recent: Any = query._jsq.recentProgress()  # noqa: SLF001 - see above
    for index in reversed(range(len(recent))):
        yield json.loads(recent[index].json())


def _waits_for_records(query: StreamingQuery) -> bool:
    status = query.status
    # While a query waits for records, no trigger is active. No trigger is active before
    # the query's first batch either, so the message of the status is also checked.
    return not status["isTriggerActive"] and status["message"].startswith("Waiting")


def _warn_of_another_topic(before: Position | None, after: Position) -> None:
    if before is None or not find_replaced(before.topic_id, after.topic_id):
        return
    _log.warning(
        "the topic was deleted and recreated: the job continues at the start of the "
        "new topic, and at least %s records are lost",
        f"{after.skipped - before.skipped:,}",
    )


def _watermark_ms(progress: dict[str, Any]) -> int:
    text = progress.get("eventTime", {}).get("watermark", "1970-01-01T00:00:00.000Z")
    return round(datetime.fromisoformat(text).timestamp() * 1000)
