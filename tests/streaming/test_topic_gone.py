"""A topic that is deleted under a running monitor, on a real broker."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
from streaming.failure import JobFailed
from tests.support.kafka import KafkaTopic
from tests.support.streaming.supervised import monitor, write_messages
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

STEADY_S = 12.0
"""How long the monitor must not change what it says: several starts of a query."""


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
        assert "recreate the topic" in said_first[1]
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
        assert log.count("the query restarts when Kafka answers and has") == 1

        KafkaTopic(kafka).make()
        write_messages(kafka, "city", 4)
        wait_for(lambda: job.messages() == 7)
        wait_for(lambda: job.probe()[0] == 200)
        assert series not in httpx.get(f"{job.url}/metrics").text
        assert f"topic {kafka.topic} exists again" in caplog.messages


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
        with pytest.raises(JobFailed, match="recreated") as failed:
            job.end.result(60)
        assert failed.value.final
