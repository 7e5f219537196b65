"""A supervised job with its server, in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from streaming.cli.output import wall_ms
from streaming.cli.serving import PendingJob, current_snapshot, status_server
from streaming.cli.silence import SilenceLog
from streaming.cli.supervising import Supervisor
from streaming.retries import Retries
from streaming.watchdog import Watchdog
from tests.support.frames import FrameFactory, value_of
from tests.support.streaming.jobs import job_settings


@dataclass
class Monitor:
    """A supervised job with its server.

    Attributes:
        url: Where it serves.
        end: Ends when the job does.
    """

    url: str
    end: Future[None]

    def probe(self) -> tuple[int, str]:
        """Status and text of `/readyz`."""
        answer = httpx.get(f"{self.url}/readyz")
        return answer.status_code, answer.text

    def messages(self) -> int:
        """Messages of all channels."""
        channels = httpx.get(f"{self.url}/api/v1/channels").json()["channels"]
        return sum(one["messages"] for one in channels)


@contextmanager
def monitor(
    spark: SparkSession,
    kafka: KafkaSettings,
    checkpoint: Path,
    skip_lost: bool = False,
    watchdog: Watchdog | None = None,
) -> Iterator[Monitor]:
    """Supervise a job as `run` does."""
    pending, ending, silence = PendingJob(), threading.Event(), SilenceLog()

    def each_second() -> None:
        job = current_snapshot(pending.board, wall_ms).job
        silence.observe(job.kafka, job.missing_topic)

    settings = job_settings(kafka, checkpoint, skip_lost=skip_lost)
    supervisor = Supervisor(
        spark,
        replace(settings, until_caught_up=False),
        pending,
        ending,
        Retries(),
        each_second,
        watchdog or Watchdog(),
    )
    with (
        status_server(pending, "127.0.0.1", 0) as url,
        ThreadPoolExecutor(1) as pool,
    ):
        end = pool.submit(supervisor.run, lambda job: None)
        try:
            yield Monitor(url, end)
        finally:
            ending.set()


def write_messages(kafka: KafkaSettings, channel: str, count: int) -> None:
    """Write messages that are stamped now."""
    frames, now_ms = FrameFactory(channel), wall_ms()
    write(
        [
            TopicRecord(
                0,
                now_ms + n,
                channel.encode(),
                value_of(frames.content(f"m{n}", "ana", now_ms + n)),
                (),
            )
            for n in range(count)
        ],
        kafka,
    )
