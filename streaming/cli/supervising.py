"""Keeps a job running: starts its query again after a failure that can pass.

Page, metrics and Spark stay up meanwhile. A batch that was not committed is repeated,
as after a start of the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import SparkSession

from streaming.cli.log import logger
from streaming.cli.serving import PendingJob
from streaming.cli.starting import every_second
from streaming.failure import JobFailed
from streaming.job import Job, running_job
from streaming.retries import Retries
from streaming.session import exit_status_of_jvm, is_ended_by_master
from streaming.settings import JobSettings
from streaming.topic_watch import TopicWatch, watched_topic


class _Pause(NamedTuple):
    """Least time between a failure and another start, seconds."""

    failure: JobFailed
    wait_s: float


class Supervisor:
    """Runs one job until it ends or is ended.

    Args:
        spark: Session for the queries.
        settings: Settings of the job.
        pending: Gets the job, each time that it has started.
        ending: Set to end the job.
        retry_for_s: See `Retries`.
        each_second: Called about every second, also while there is no query.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: JobSettings,
        pending: PendingJob,
        ending: threading.Event,
        retry_for_s: float | None,
        each_second: Callable[[], None],
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._pending = pending
        self._ending = ending
        self._retries = Retries(retry_for_s)
        self._each_second = each_second

    def run(self, at_end: Callable[[Job], None]) -> None:
        """Run the job; Kafka must have answered before.

        `at_end` is called with the job when it ends without an error.

        Raises:
            Exception: See `streaming.job.running_job` and `streaming.job.Job.wait`.
        """
        kafka, group = self._settings.source.kafka, self._settings.group
        with watched_topic(kafka, self._pending.board, group) as watch:
            while (pause := self._run_once(watch, at_end)) is not None:
                if not self._wait(pause, watch):
                    # Ended while there was no query.
                    if self._pending.job is not None:
                        at_end(self._pending.job)
                    return

    def _run_once(
        self, watch: TopicWatch, at_end: Callable[[Job], None]
    ) -> _Pause | None:
        """Run the query until its end; returns a pause if it is to start again."""
        self._retries.note_start(time.monotonic())
        job = None
        try:
            with running_job(
                self._spark, self._settings, self._pending.board, watch=watch
            ) as job:
                self._pending.job = job
                for _ in every_second(job, self._ending):
                    if job.progress.works:
                        self._retries.note_work(time.monotonic())
                    self._each_second()
                at_end(job)
        except JobFailed as failure:
            is_over = exit_status_of_jvm() is not None or is_ended_by_master()
            if self._ending.is_set() or is_over:
                raise
            has_worked = job is not None and job.progress.batches > 0
            wait_s = self._retries.wait_after(failure, has_worked, time.monotonic())
            if wait_s is None:
                raise
            return _Pause(failure, wait_s)
        return None

    def _wait(self, pause: _Pause, watch: TopicWatch) -> bool:
        """Wait until the query should start again; returns False if it is to end.

        Raises:
            JobFailed: It is too late for another start.
            connectors.kafka.settings.KafkaRefused: A broker refuses the client.
        """
        failed_s = time.monotonic()
        self._pending.board.set_job(retrying=True)
        unreachable = pause.failure.unreachable
        when = "when Kafka answers and has the topic" if unreachable else "soon"
        logger.warning("%s; the query starts again %s", pause.failure, when)
        while not self._ending.wait(1.0):
            self._each_second()
            watch.check()
            now_s = time.monotonic()
            job = self._pending.board.snapshot.job
            has_topic = job.kafka.answered_s > failed_s and job.missing_topic is None
            if now_s >= failed_s + pause.wait_s and has_topic:
                logger.info("the query starts again")
                return True
            if self._retries.is_over(now_s):
                raise pause.failure
        return False
