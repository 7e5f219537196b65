"""Transactions that are aborted while a job runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from streaming.job import running_job
from tests.support.kafka import KafkaTopic
from tests.support.monitor import report_of
from tests.support.streaming.jobs import JobRunner, job_settings, wait_until

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(900),
]

PARTS = 3


def test_aborted_transactions_change_no_figure(
    topic: Callable[..., KafkaSettings],
    drain: JobRunner,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """Nor those that withhold genuine records until they end.

    If they were read, they would be dead letters, and move the clock of the topic
    beyond the records behind them.
    """
    records = load_recording()
    kafka = topic(partitions=0)
    ensure_frames_topic(kafka, partitions_of(records))
    frames, size = KafkaTopic(kafka), -(-len(records) // PARTS)
    settings = job_settings(kafka, tmp_path / "a", until_caught_up=False)
    with running_job(spark, settings) as job:
        for first in range(0, len(records), size):
            part = records[first : first + size]
            times_ms = [part[-1].timestamp_ms + 50_000] * 20
            with ExitStack() as aborted:
                for partition in range(partitions_of(records)):
                    open_one = frames.transaction(times_ms, partition, commit=False)
                    aborted.enter_context(open_one)
                write(part, kafka)
                wait_until(job, lambda: job.board.snapshot.job.records_behind > 0)
            wait_until(job, lambda: job.board.snapshot.job.records_behind == 0)
    report, expected = drain(kafka, "a"), report_of(records)
    assert report["channels"] == expected["channels"]
    assert report["totals"]["undecodable"] == expected["totals"]["undecodable"]
