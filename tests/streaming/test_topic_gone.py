"""A topic that is deleted under a running monitor, on a real broker."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from streaming.cli.output import wall_ms
from streaming.cli.serving import PendingJob, current_snapshot, status_server
from streaming.cli.silence import SilenceLog
from streaming.cli.supervising import Supervisor
from streaming.failure import JobFailed
from streaming.retries import Retries
from tests.support.frames import FrameFactory, value_of
from tests.support.kafka import KafkaTopic
from tests.support.streaming.jobs import job_settings
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

STEADY_S = 12.0
"""How long the monitor must not change what it says: several starts of a query."""


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
    spark: SparkSession, kafka: KafkaSettings, checkpoint: Path, skip_lost: bool
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


def test_deleted_topic_is_said_alike_until_it_is_there_again(
    topic: Callable[..., KafkaSettings],
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Probe, page, metric and log; the job then goes on at the start of the new one."""
    caplog.set_level(logging.INFO, "sds-monitor")
    kafka = replace(topic(), timeout_s=5.0)
    write_messages(kafka, "town", 3)
    with monitor(spark, kafka, tmp_path / "a", skip_lost=True) as job:
        wait_for(lambda: job.messages() == 3)
        wait_for(lambda: job.probe()[0] == 200)
        KafkaTopic(kafka).delete()
        wait_for(lambda: job.probe()[0] == 503)
        missing = f"Topic {kafka.topic} has been missing since "
        wait_for(lambda: missing in job.probe()[1])
        said_first = job.probe()
        assert "create it again" in said_first[1]
        until_s = time.monotonic() + STEADY_S
        while time.monotonic() < until_s:
            assert job.probe() == said_first
            page = httpx.get(job.url).text
            assert missing in page
            assert 'data-verdict="blind"' not in page
            assert missing in httpx.get(f"{job.url}/monitor").text
            assert "sds_monitor_ok 0.0" in httpx.get(f"{job.url}/metrics").text
            time.sleep(0.2)
        series = "\nsds_monitor_topic_missing_since_timestamp_seconds "
        assert series in httpx.get(f"{job.url}/metrics").text
        log = "\n".join(caplog.messages)
        assert log.count(missing) == 1
        assert log.count("the query starts again when Kafka answers and has") == 1

        KafkaTopic(kafka).make()
        write_messages(kafka, "city", 4)
        wait_for(lambda: job.messages() == 7)
        wait_for(lambda: job.probe()[0] == 200)
        assert series not in httpx.get(f"{job.url}/metrics").text
        assert f"topic {kafka.topic} is there again" in caplog.messages


def test_deleted_topic_that_is_made_anew_ends_the_job_without_skip(
    topic: Callable[..., KafkaSettings], spark: SparkSession, tmp_path: Path
) -> None:
    """Its offsets belong to other records: a person is needed."""
    kafka = replace(topic(), timeout_s=5.0)
    write_messages(kafka, "town", 3)
    with monitor(spark, kafka, tmp_path / "a", skip_lost=False) as job:
        wait_for(lambda: job.messages() == 3)
        KafkaTopic(kafka).delete()
        wait_for(lambda: job.probe()[0] == 503)
        KafkaTopic(kafka).make()
        with pytest.raises(JobFailed, match="made anew") as failed:
            job.end.result(60)
        assert failed.value.final
