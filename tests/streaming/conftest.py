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
from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import KEEP_FOR_EVER, ensure_frames_topic, ensure_topic
from connectors.recording import load_recording
from streaming.batch_log import read_batch_log
from streaming.job import Job, running_job
from tests.support.golden.checkpoints import HALF
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


@pytest.fixture(scope="module")
def recorded(module_topic: Callable[..., KafkaSettings]) -> KafkaSettings:
    """A topic with half of the recording."""
    records = load_recording()
    kafka = module_topic(partitions=0)
    ensure_frames_topic(kafka, partitions_of(records))
    write(records[:HALF], kafka)
    return kafka


@pytest.fixture(scope="module")
def healthy(
    recorded: KafkaSettings,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A checkpoint of several batches, which has read half of the recording."""
    checkpoint = tmp_path_factory.mktemp("healthy") / "checkpoint"
    settings = job_settings(recorded, checkpoint, rows=250, report_detail=True)
    with running_job(spark, settings) as job:
        wait_for_end(job)
    write(load_recording()[HALF:], recorded)
    log = read_batch_log(checkpoint)
    assert log.committed is not None
    assert log.committed >= 3
    return checkpoint
