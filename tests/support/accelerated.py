"""The real job on simulated traffic that runs faster than real time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, opening_of, partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.simulator.records import AnyScenario, simulation_of
from sds_core.observer.channel_table import ChannelTable
from streaming.cli.serving import PendingJob
from streaming.job import Job, running_job
from streaming.settings import JobSettings, SourceSettings
from tests.support.waiting import wait_for

_PARTITIONS = 4
_FOLLOW_S = 0.3
"""The product looks once a second, in which here a minute passes."""


def simulated(
    scenarios: Sequence[AnyScenario], seed: int, end_ms: int
) -> list[TopicRecord]:
    """Traffic of several scenarios at once, in order of time.

    Args:
        scenarios: As long as each other; no two have a channel or a tap in common.
        seed: Of each.
        end_ms: When the traffic is to end, Unix ms.
    """
    (total_ms,) = {scenario.total_ms for scenario in scenarios}
    # At a whole second, as some Lamport timestamps count seconds.
    start_ms = (end_ms - total_ms) // 1000 * 1000
    records = [
        record
        for scenario in scenarios
        for record in simulation_of(scenario, seed, start_ms, _PARTITIONS).records
    ]
    return sorted(records, key=lambda record: record.timestamp_ms)


class Play:
    """Traffic that a job reads while it is written.

    Args:
        records: In order of time, the last at most at the wall time at which it will
            be written.
        speed: Seconds of record time per second.

    Attributes:
        shown: The job and its figures, to be served from the start.
    """

    def __init__(self, records: Sequence[TopicRecord], speed: float) -> None:
        opening = opening_of(records)
        self._opening, self._rest = records[:opening], records[opening:]
        self._speed = speed
        self._stop = threading.Event()
        self._writing: Future[int] | None = None
        self.shown = PendingJob()

    @contextmanager
    def staged(
        self,
        spark: SparkSession,
        kafka: KafkaSettings,
        checkpoint: Path,
        table: ChannelTable,
    ) -> Iterator[None]:
        """Run a job that has read the opening; job and play end with the block.

        Args:
            spark: Runs the job.
            kafka: The topic, which is made.
            checkpoint: Of the job.
            table: What the operator says of channels.
        """
        ensure_frames_topic(kafka, partitions_of(self._opening))
        # A partition without any record yet does not hold the clock back.
        write(self._opening, kafka)
        settings = JobSettings(
            SourceSettings(kafka), checkpoint, trigger_s=0, channel_table=table
        )
        with (
            running_job(spark, settings, self.shown.board) as job,
            ThreadPoolExecutor(2) as self._pool,
        ):
            self.shown.job = job
            self._following = self._pool.submit(self._follow, job)
            try:
                wait_for(lambda: self._has_read(len(self._opening)))
                yield
            finally:
                self._stop.set()
            self._following.result()

    def begin(self) -> None:
        """Start the writer of the records."""
        assert self.shown.job is not None
        kafka = self.shown.job.settings.source.kafka
        self._writing = self._pool.submit(
            write, self._rest, kafka, self._speed, self._stop
        )

    @property
    def is_over(self) -> bool:
        """Whether all records are written and read.

        Raises:
            connectors.kafka.settings.KafkaUnreachable: They could not be written.
            streaming.failure.JobFailed: They could not be read.
        """
        if self._writing is None or not self._writing.done():
            return False
        return self._has_read(len(self._opening) + self._writing.result())

    def _has_read(self, records: int) -> bool:
        if self._following.done():
            self._following.result()
        return self.shown.board.snapshot.job.records >= records

    def _follow(self, job: Job) -> None:
        while not self._stop.wait(_FOLLOW_S):
            job.progress.update(job.query)
            if not job.query.isActive:
                # Raises what it ended of.
                job.wait(1.0)
