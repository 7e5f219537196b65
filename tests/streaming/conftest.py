"""Jobs on the session and the broker of all tests, and a checkpoint without a job."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import KEEP_FOR_EVER, ensure_topic
from streaming.job import Job, running_job
from tests.support.identities import assert_identities
from tests.support.streaming.history import Checkpoint
from tests.support.streaming.jobs import (
    TIMEOUT_S,
    JobRunner,
    job_settings,
    wait_for_end,
)

GENERATED_AT_MS = 0

_numbers = itertools.count(1)


def new_topic(broker: EmbeddedBroker, partitions: int) -> KafkaSettings:
    """Settings of a topic of a name of its own; without partitions it is not made."""
    settings = KafkaSettings(broker.bootstrap, f"job-{next(_numbers)}", TIMEOUT_S)
    if partitions:
        ensure_topic(settings, settings.topic, partitions, KEEP_FOR_EVER)
    return settings


@pytest.fixture
def topic(kafka_broker: EmbeddedBroker) -> Callable[..., KafkaSettings]:
    """Make topics on the session's broker."""
    return lambda partitions=1: new_topic(kafka_broker, partitions)


@pytest.fixture(scope="module")
def module_topic(kafka_broker: EmbeddedBroker) -> Callable[..., KafkaSettings]:
    """Make topics that several tests of a module share."""
    return lambda partitions=1: new_topic(kafka_broker, partitions)


@pytest.fixture
def drain(spark: SparkSession, tmp_path: Path) -> JobRunner:
    """Read all that a topic holds on a checkpoint, and give the report."""

    def run(kafka: KafkaSettings, checkpoint: str = "a", **options: Any) -> Any:
        settings = job_settings(kafka, tmp_path / checkpoint, **options)
        with running_job(spark, settings) as job:
            wait_for_end(job)
            report = job.report(GENERATED_AT_MS)
            assert_identities(report)
            return report

    return run


@pytest.fixture
def live(spark: SparkSession, tmp_path: Path) -> Callable[..., Any]:
    """A job that runs until the block ends."""

    @contextmanager
    def run(
        kafka: KafkaSettings, checkpoint: str = "a", **options: Any
    ) -> Iterator[Job]:
        options = {"until_caught_up": False} | options
        settings = job_settings(kafka, tmp_path / checkpoint, **options)
        with running_job(spark, settings) as job:
            yield job

    return run


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """A new checkpoint with a new history."""
    return Checkpoint(tmp_path / "monitor", tmp_path / "history")
