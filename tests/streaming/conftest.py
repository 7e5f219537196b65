"""One Spark session for all tests, and jobs on the shared broker."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.consumer import Client
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import KEEP_FOR_EVER, ensure_topic
from streaming.admission import BatchLimits
from streaming.history import HistorySettings
from streaming.job import Job, JobSettings, running_job
from streaming.session import SessionSettings, make_session
from streaming.source import SourceSettings
from tests.support.identities import assert_identities

GENERATED_AT_MS = 0
TIMEOUT_S = 20.0

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session as the product makes it, with two cores."""
    session = make_session(SessionSettings("local[2]", shuffle_partitions=2))
    yield session
    session.stop()


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


JobRunner = Callable[..., dict[str, Any]]


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
        dead_letter_topic=f"{kafka.topic}.dead-letter",
        group=f"{kafka.topic}-monitor",
        history=history,
    )


def wait_for_end(job: Job, seconds: int = 120) -> None:
    """Wait until a draining job has ended."""
    for _ in range(seconds):
        if job.wait(1.0):
            return
    pytest.fail(f"the job has not ended within {seconds} s")


def wait_until(job: Job, condition: Callable[[], bool], seconds: int = 60) -> None:
    """Let a job run until something holds."""
    for _ in range(seconds):
        job.wait(1.0)
        if condition():
            return
    pytest.fail(f"nothing came of it within {seconds} s: {job.board.snapshot}")
