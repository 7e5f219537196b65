"""Jobs for tests: settings and waiting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.settings import Client, KafkaSettings
from streaming.damage import DamagedCheckpoint
from streaming.job import Job, running_job
from streaming.settings import (
    FORGET_DAYS,
    BatchLimits,
    HistorySettings,
    JobSettings,
    SourceSettings,
)

TIMEOUT_S = 20.0

JobRunner = Callable[..., dict[str, Any]]
"""Reads all that a topic holds on a checkpoint; gives the report."""


def job_settings(
    kafka: KafkaSettings,
    checkpoint: Path,
    rows: int = BatchLimits().rows,
    size_bytes: int = BatchLimits().size_bytes,
    client: Client = Client.CONFLUENT,
    start: str | int = "earliest",
    skip_lost: bool = False,
    until_caught_up: bool = True,
    report_detail: bool = False,
    label_budget: int = 200,
    history: HistorySettings | None = None,
    observer: Mapping[str, int | float] = MappingProxyType({}),
    forget_days: int = FORGET_DAYS,
) -> JobSettings:
    """Settings of a job with short triggers."""
    return JobSettings(
        SourceSettings(
            kafka,
            client=client,
            limits=BatchLimits(rows, size_bytes),
            start=start,
            skip_lost=skip_lost,
        ),
        checkpoint,
        trigger_s=0.2,
        until_caught_up=until_caught_up,
        report_detail=report_detail,
        label_budget=label_budget,
        dead_letter_topic=f"{kafka.topics[0]}.dead-letter",
        group=f"{kafka.topics[0]}-monitor",
        history=history,
        observer=observer,
        forget_days=forget_days,
    )


def wait_for_end(job: Job, seconds: int = 120) -> None:
    """Wait until a draining job has ended."""
    for _ in range(seconds):
        if job.wait(1.0):
            return
    pytest.fail(f"the job has not ended within {seconds} s")


def wait_until(job: Job, condition: Callable[[], bool], seconds: int = 60) -> None:
    """Let a job run until a condition is true."""
    for _ in range(seconds):
        job.wait(1.0)
        if condition():
            return
    pytest.fail(f"nothing came of it within {seconds} s: {job.board.snapshot}")


def refusal(
    checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> DamagedCheckpoint:
    """The error with which a job refuses a checkpoint."""
    settings = job_settings(recorded, checkpoint, report_detail=True)
    with pytest.raises(DamagedCheckpoint) as caught, running_job(spark, settings):
        pass
    assert len(str(caught.value).splitlines()) == 1
    return caught.value
