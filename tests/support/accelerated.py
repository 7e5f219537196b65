"""The real job on simulated traffic that is played faster than life."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, opening_of, partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.simulator.records import simulated_records
from sds_core.observer.channel_table import ChannelTable
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth
from streaming.query import Job, JobSettings, running_job
from streaming.source import SourceSettings
from tests.support.waiting import wait_for

_PARTITIONS = 4
_FOLLOW_S = 0.3
"""The product does so once a second, in which here a minute passes."""


def simulated(
    scenarios: Sequence[Scenario], seed: int, end_ms: int
) -> list[TopicRecord]:
    """Traffic of several scenarios at once, in order of time.

    Args:
        scenarios: As long as each other; no two have a channel or a tap in common.
        seed: Of each.
        end_ms: When the traffic is to end, Unix ms.
    """
    (total_ms,) = {scenario.total_ms for scenario in scenarios}
    start_ms = (end_ms - total_ms) // 1000 * 1000
    records = [
        record
        for scenario in scenarios
        for record in simulated_records(
            scenario, seed, start_ms, _PARTITIONS, Truth(scenario.name, seed)
        )
    ]
    return sorted(records, key=lambda record: record.timestamp_ms)


class AcceleratedClock:
    """A wall clock that waits at the begin of a play, runs fast, and ends with it.

    Args:
        begin_ms: When the play begins, Unix ms.
        end_ms: When it ends: what comes after is no silence.
        speed: Its seconds per second.
    """

    def __init__(self, begin_ms: int, end_ms: int, speed: float) -> None:
        self._begin_ms = begin_ms
        self._end_ms = end_ms
        self._speed = speed
        self._started_s: float | None = None

    def start(self) -> None:
        """From here on it runs."""
        self._started_s = time.monotonic()

    def __call__(self) -> int:
        """The time now, Unix ms."""
        if self._started_s is None:
            return self._begin_ms
        passed_s = (time.monotonic() - self._started_s) * self._speed
        return min(self._end_ms, self._begin_ms + round(passed_s * 1000))


class Play:
    """Traffic that a job reads while it is written.

    Args:
        job: Reads it.
        records: All of it, the opening included.
        speed: Seconds of record time per second.
        pool: Where it is written.

    Attributes:
        job: As given.
        clock: The time in the play.
    """

    def __init__(
        self,
        job: Job,
        records: Sequence[TopicRecord],
        speed: float,
        pool: ThreadPoolExecutor,
    ) -> None:
        self.job = job
        self._records = records
        self._opening = opening_of(records)
        self._speed = speed
        self._pool = pool
        self._stop = threading.Event()
        self._writing: Future[int] | None = None
        self.clock = AcceleratedClock(
            records[self._opening].timestamp_ms, records[-1].timestamp_ms, speed
        )

    def begin(self) -> None:
        """Let time run, and the records come with it."""
        kafka = self.job.settings.source.kafka
        rest = self._records[self._opening :]
        self.clock.start()
        self._writing = self._pool.submit(write, rest, kafka, self._speed, self._stop)

    def end(self) -> None:
        """Write no more."""
        self._stop.set()

    @property
    def is_over(self) -> bool:
        """Whether all records are written and read.

        Raises:
            connectors.kafka.settings.KafkaUnreachable: They could not be written.
        """
        if self._writing is None or not self._writing.done():
            return False
        self._writing.result()
        return self.job.board.snapshot.job.records >= len(self._records)


@contextmanager
def prepared_play(
    spark: SparkSession,
    kafka: KafkaSettings,
    checkpoint: Path,
    records: Sequence[TopicRecord],
    speed: float,
    table: ChannelTable,
) -> Iterator[Play]:
    """A job that has read the opening of some traffic; both end with the block.

    Args:
        spark: Runs the job.
        kafka: The topic, which is made.
        checkpoint: Of the job.
        records: In order of time, the last at most at the wall time at which it will
            be written.
        speed: Seconds of record time per second.
        table: What the operator says of channels.
    """
    ensure_frames_topic(kafka, partitions_of(records))
    # A partition without any record yet does not hold the clock back.
    opening = opening_of(records)
    write(records[:opening], kafka)
    settings = JobSettings(
        SourceSettings(kafka), checkpoint, trigger_s=0, channel_table=table
    )
    with running_job(spark, settings) as job, ThreadPoolExecutor(2) as pool:
        stop = threading.Event()
        following = pool.submit(_follow, job, stop)
        play = Play(job, records, speed, pool)
        try:
            wait_for(
                lambda: (
                    following.done() or job.board.snapshot.job.records >= opening
                )
            )
            yield play
        finally:
            play.end()
            stop.set()
        following.result()


def _follow(job: Job, stop: threading.Event) -> None:
    while not stop.wait(_FOLLOW_S):
        job.progress.update(job.query)
        if not job.query.isActive:
            # Raises what it ended of.
            job.wait(1.0)
