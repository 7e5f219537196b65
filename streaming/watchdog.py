"""Ends a query that makes no progress although Kafka answers.

If a query makes no progress, it waits for a process that hangs, and no time limit of a
client ends the wait. To stop a query, Spark ends the query's tasks, but then waits for
the Python process that plans batches. The monitor therefore kills this process. The
query restarts like any failed query.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import psutil
from pyspark import SparkContext

from streaming.failure import JobFailed

STALL_S = 300.0
"""Time without progress after which a query is ended, seconds.

A batch takes less time.
"""

_PAUSE_S = 30.0
"""If more seconds than this pass between two checks, the monitor was paused."""

_SET_BACK_S = 5.0
"""The wall clock counts as set back if, between two checks, it falls behind the
monotonic clock by more seconds than this."""

_PLANNER = "pyspark.sql.streaming.python_streaming_source_runner"
"""Python module that Spark runs in a process of its own to plan batches."""


class Watchdog:
    """Measures how long a query has made no progress while Kafka answered.

    A query that makes no progress for `limit_s` seconds counts as stalled. The watchdog
    also detects that the wall clock was set back. Before Spark plans the next batch,
    Spark waits until a certain wall time. If the clock is set back, this wait becomes
    too long.
    """

    def __init__(self, limit_s: float = STALL_S) -> None:
        self.limit_s = limit_s
        self.begin()

    def begin(self) -> None:
        """Record that a query starts."""
        self._idle_since_s: float | None = None
        self._checked_s = float("-inf")
        self._ahead_s: float | None = None

    def check(
        self, works: bool, knows_topic: bool, now_s: float, wall_s: float
    ) -> None:
        """Check whether the query must be ended; called about every second.

        Args:
            works: See `streaming.progress.Progress.works`.
            knows_topic: Whether Kafka answers and has the topic. If not, a query
                without progress does not count as stalled.
            now_s: Time of a monotonic clock.
            wall_s: Wall time, Unix s.

        Raises:
            JobFailed: The query has stalled, or the wall clock was set back, so the
                query would wait until the clock reaches its earlier time again. The
                query can be restarted.
        """
        ahead_s = wall_s - now_s
        before_s, self._ahead_s = self._ahead_s, ahead_s
        if before_s is not None and before_s - ahead_s > _SET_BACK_S:
            message = (
                f"the wall clock was set back by {before_s - ahead_s:,.0f} s: the "
                "query is stopped, because Spark would start no batch until these "
                "seconds have passed"
            )
            raise JobFailed(message, passes=True)
        # If this process was paused, for example during a backup of its machine, the
        # time without progress is measured from 0 again.
        is_resumed = now_s - self._checked_s > _PAUSE_S
        self._checked_s = now_s
        if works or not knows_topic or is_resumed:
            self._idle_since_s = None
        elif self._idle_since_s is None:
            self._idle_since_s = now_s
        elif (idle_s := now_s - self._idle_since_s) >= self.limit_s:
            message = (
                f"the query made no progress for {idle_s:,.0f} s although Kafka "
                "answered, so the query is stopped"
            )
            raise JobFailed(message, passes=True)


def end_planning() -> None:
    """Kill the Python process that plans batches; each query starts a new one."""
    for process in planners():
        with suppress(psutil.NoSuchProcess):
            process.kill()


def planners() -> list[psutil.Process]:
    """Return the Python processes that Spark's JVM has started to plan batches."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - Spark has no other name for it
    if gateway is None:
        return []
    # Under spark-submit, the JVM is the parent of this process.
    jvm = os.getppid() if gateway.proc is None else gateway.proc.pid
    found = []
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(jvm).children(recursive=True):
            # Any process may end during this search.
            with suppress(psutil.NoSuchProcess):
                if _PLANNER in process.cmdline():
                    found.append(process)
    return found
