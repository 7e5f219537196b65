"""A query that makes no progress although Kafka answers."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
from streaming.failure import JobFailed
from streaming.watchdog import STALL_S, Watchdog, planners
from tests.support.streaming.supervised import monitor, write_messages
from tests.support.waiting import wait_for


@pytest.mark.parametrize(
    ("works", "knows_topic"), [([50.0], []), ([], [50.0]), ([50.0, 120.0], [99.0])]
)
def test_only_time_without_work_and_with_kafka_counts(
    works: list[float], knows_topic: list[float]
) -> None:
    """It begins again when the query works, or Kafka has answered again."""
    watchdog = Watchdog(60)
    last_s = max([*works, *knows_topic])
    for now_s in map(float, range(0, int(last_s) + 61)):
        watchdog.check(now_s in works, now_s not in knows_topic, now_s, now_s)
    with pytest.raises(JobFailed, match="no progress for 60 s although") as failed:
        watchdog.check(False, True, last_s + 61, last_s + 61)
    assert failed.value.passes
    # The next query has its own time.
    watchdog.begin()
    watchdog.check(False, True, last_s + 62, last_s + 62)


def test_time_in_which_the_process_stood_still_does_not_count() -> None:
    """A backup stops it."""
    watchdog = Watchdog(60)
    for now_s in (0.0, 1.0, 400.0, 401.0, 430.0):
        watchdog.check(False, True, now_s, now_s)


def test_query_starts_again_when_the_wall_clock_was_set_back() -> None:
    """Not for a step forward or a drift; the next query has the clock as it is."""
    watchdog = Watchdog(60)
    for now_s, wall_s in ((0.0, 1_000.0), (1.0, 1_601.0), (2.0, 1_598.0)):
        watchdog.check(True, True, now_s, wall_s)
    with pytest.raises(JobFailed, match="was set back by 600 s") as failed:
        watchdog.check(True, True, 3.0, 999.0)
    assert failed.value.passes
    watchdog.begin()
    watchdog.check(True, True, 4.0, 1_000.0)


@pytest.mark.kafka
@pytest.mark.spark
def test_query_that_hangs_is_ended_and_started_again(
    topic: Callable[..., KafkaSettings],
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its source stops like a process in a lock; log, page and metric say so."""
    caplog.set_level(logging.INFO, "sds-monitor")
    kafka = topic()
    write_messages(kafka, "town", 3)
    watchdog = Watchdog()
    with monitor(spark, kafka, tmp_path / "a", watchdog=watchdog) as job:
        wait_for(lambda: job.messages() == 3)
        wait_for(lambda: job.probe()[0] == 200)
        sources = planners()
        for source in sources:
            source.send_signal(signal.SIGSTOP)
        assert sources
        write_messages(kafka, "city", 4)
        pages = []

        def page_says_so() -> bool:
            pages.append(httpx.get(f"{job.url}/monitor").text)
            return "made no progress for" in pages[-1]

        watchdog.limit_s = 3.0
        wait_for(page_says_so)
        watchdog.limit_s = STALL_S
        wait_for(lambda: job.messages() == 7)
        wait_for(lambda: job.probe()[0] == 200)
        metrics = httpx.get(f"{job.url}/metrics").text
    assert "\nsds_monitor_stalls_total 1.0\n" in metrics
    log = "\n".join(caplog.messages)
    assert log.count("although Kafka answered, so the query is stopped") == 1
    assert "Traceback" not in log
