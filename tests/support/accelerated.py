"""The real job and exporter on simulated traffic, played faster than life."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
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

PARTITIONS = 4
_FOLLOW_S = 0.3


def simulated(
    scenarios: Sequence[Scenario], seed: int, end_ms: int
) -> list[TopicRecord]:
    """Traffic of several scenarios at once, in order of time.

    Args:
        scenarios: As long as each other; no two have a channel or a tap in common.
        seed: Of each.
        end_ms: When the traffic ends, about, Unix ms.
    """
    (total_ms,) = {scenario.total_ms for scenario in scenarios}
    # At a whole second, as some lamport timestamps count seconds.
    start_ms = (end_ms - total_ms) // 1000 * 1000
    records = [
        record
        for scenario in scenarios
        for record in simulated_records(
            scenario, seed, start_ms, PARTITIONS, Truth(scenario.name, seed)
        )
    ]
    return sorted(records, key=lambda record: record.timestamp_ms)


class AcceleratedClock:
    """A wall clock that stands at a play's begin, then runs fast, up to its end.

    Args:
        begin_ms: Time at which the play begins, Unix ms.
        end_ms: Time at which it ends.
        speed: Its seconds per second.
    """

    def __init__(self, begin_ms: int, end_ms: int, speed: float) -> None:
        self._begin_ms = begin_ms
        self._end_ms = end_ms
        self._speed = speed
        self._begun_s: float | None = None

    def start(self) -> None:
        """From here on it runs."""
        self._begun_s = time.monotonic()

    def __call__(self) -> int:
        """The time, Unix ms."""
        if self._begun_s is None:
            return self._begin_ms
        passed_s = (time.monotonic() - self._begun_s) * self._speed
        return min(self._end_ms, self._begin_ms + round(passed_s * 1000))


@dataclass(frozen=True)
class Play:
    """Traffic that is played to a job.

    Attributes:
        job: Reads it.
        clock: The time in the play.
        records: What is played.
        speed: Seconds of record time per second.
    """

    job: Job
    clock: AcceleratedClock
    records: Sequence[TopicRecord]
    speed: float
    _writing: list[Future[int]]
    _begin: threading.Event

    def begin(self) -> None:
        """Let time run, and the records come with it."""
        self.clock.start()
        self._begin.set()

    @property
    def is_over(self) -> bool:
        """Whether every record has been read, and every deadline before its end fired.

        Raises:
            Exception: What hindered the writing.
        """
        (writing,) = self._writing
        end_ms = self.records[-1].timestamp_ms
        return (
            writing.done()
            and writing.result() > 0
            and self.job.progress.fired_ms >= end_ms
            and self.job.board.snapshot.job.records >= len(self.records)
        )


@contextmanager
def play(
    spark: SparkSession,
    kafka: KafkaSettings,
    checkpoint: Path,
    records: Sequence[TopicRecord],
    speed: float,
    table: ChannelTable,
) -> Iterator[Play]:
    """The job on traffic that waits to be played; stopped at the end of the block.

    Args:
        spark: Runs the job.
        kafka: The topic, which is made.
        checkpoint: Of the job.
        records: In order of time, the last at most at the wall time of when it is
            written.
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
    clock = AcceleratedClock(
        records[opening - 1].timestamp_ms, records[-1].timestamp_ms, speed
    )
    begin, stop = threading.Event(), threading.Event()
    writing: list[Future[int]] = []

    def write_rest() -> int:
        begin.wait()
        return write(records[opening:], kafka, speed, stop)

    def follow(job: Job) -> None:
        while not stop.wait(_FOLLOW_S):
            job.progress.update(job.query)
            if not job.query.isActive:
                job.wait(1.0)

    with (
        running_job(spark, settings) as job,
        ThreadPoolExecutor(2) as pool,
    ):
        following = pool.submit(follow, job)
        writing.append(pool.submit(write_rest))
        try:
            wait_for(lambda: job.board.snapshot.job.records >= opening)
            yield Play(job, clock, records, speed, writing, begin)
        finally:
            begin.set()
            stop.set()
        following.result()
