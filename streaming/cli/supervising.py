"""Keeps a job running: restarts its query after a temporary failure.

Page, metrics and Spark continue to run between the queries. If the failed query left a
batch without a commit, the next query repeats the batch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from streaming.cli.log import logger
from streaming.cli.output import wall_ms
from streaming.cli.serving import PendingJob
from streaming.cli.starting import every_second
from streaming.failure import JobFailed
from streaming.job import Job, running_job
from streaming.retries import Retries
from streaming.session import exit_status_of_jvm, is_ended_by_master
from streaming.settings import JobSettings
from streaming.topic_watch import TopicWatch, watched_topic
from streaming.watchdog import Watchdog, end_planning

_Pause = tuple[JobFailed, float]
"""The query's failure, and the minimum time until the query restarts, seconds."""


@dataclass(slots=True)
class Supervisor:
    """Runs a job until the job ends or a signal arrives.

    Each time the query starts, `pending.job` is set to the new job. `each_second` is
    also called between a failure and the restart.
    """

    spark: SparkSession
    settings: JobSettings
    pending: PendingJob
    ending: threading.Event
    retries: Retries
    each_second: Callable[[], None]
    watchdog: Watchdog = field(default_factory=Watchdog)

    def run(self, at_end: Callable[[Job], None]) -> None:
        """Run the job, and restart it after temporary failures.

        If the job ends without an error, `at_end` is called.

        Raises:
            Exception: The errors of `streaming.job.running_job` and
                `streaming.job.Job.wait`.
        """
        kafka, group = self.settings.source.kafka, self.settings.group
        with watched_topic(kafka, self.pending.board, group) as watch:
            while (pause := self._run_once(watch, at_end)) is not None:
                if not self._wait(*pause, watch):
                    # A signal ended the job while no query ran.
                    if self.pending.job is not None:
                        at_end(self.pending.job)
                    return
                failure, _ = pause
                if failure.unreachable:
                    source = replace(self.settings.source, answering_ms=wall_ms())
                    self.settings = replace(self.settings, source=source)

    def _run_once(
        self, watch: TopicWatch, at_end: Callable[[Job], None]
    ) -> _Pause | None:
        """Run the query until it ends.

        If the query should restart, return why it failed and how long to wait.
        """
        self.retries.note_start(time.monotonic())
        self.watchdog.begin()
        job = None
        try:
            with running_job(
                self.spark, self.settings, self.pending.board, watch=watch
            ) as job:
                self.pending.job = job
                for _ in every_second(job, self.ending):
                    now_s = time.monotonic()
                    if job.progress.works:
                        self.retries.note_work(now_s)
                    self.each_second()
                    self._end_if_stalled(job, now_s)
                at_end(job)
        except JobFailed as failure:
            is_over = exit_status_of_jvm() is not None or is_ended_by_master()
            if self.ending.is_set() or is_over:
                raise
            has_worked = job is not None and job.progress.batches > 0
            wait_s = self.retries.wait_after(failure, has_worked, time.monotonic())
            if wait_s is None:
                raise
            return failure, wait_s
        return None

    def _end_if_stalled(self, job: Job, now_s: float) -> None:
        figures = job.board.snapshot.as_of(now_s).job
        try:
            works, knows_topic = job.progress.works, figures.knows_topic
            self.watchdog.check(works, knows_topic, now_s, wall_ms() / 1000)
        except JobFailed as failure:
            stalls = figures.stalls + 1
            job.board.set_job(running=False, error=failure.cause, stalls=stalls)
            end_planning()
            raise

    def _wait(self, failure: JobFailed, wait_s: float, watch: TopicWatch) -> bool:
        """Wait until the query can restart; return False if a signal arrives first."""
        failed_s = time.monotonic()
        self.pending.board.set_job(retrying=True)
        unreachable = failure.unreachable
        when = "when Kafka answers and has the topic" if unreachable else "soon"
        logger.warning("%s; the query restarts %s", failure, when)
        while not self.ending.wait(1.0):
            self.each_second()
            watch.check()
            now_s = time.monotonic()
            job = self.pending.board.snapshot.job
            has_topic = job.kafka.answered_s > failed_s and job.missing_topic is None
            if now_s >= failed_s + wait_s and has_topic:
                logger.info("the query restarts")
                return True
            if self.retries.is_over(now_s):
                raise failure
        return False
