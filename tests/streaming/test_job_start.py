"""Where a job begins, and on which checkpoint, on real Kafka and real Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
from streaming.checkpoint import (
    CheckpointMismatch,
)
from streaming.directories import DirectoryInUse, DirectoryUnwritable
from streaming.job import running_job
from tests.support.streaming.jobs import job_settings, wait_until
from tests.support.streaming.records import T0, a_frame, produce

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Topic = Callable[..., KafkaSettings]
Drain = Callable[..., dict[str, Any]]
Live = Callable[..., Any]


def test_start_option_decides_where_a_new_checkpoint_begins(
    topic: Topic, drain: Drain
) -> None:
    """``latest`` skips all old records, a time those before it."""
    kafka = topic()
    produce(
        kafka,
        {"value": a_frame("a"), "timestamp_ms": T0},
        {"value": a_frame("b"), "timestamp_ms": T0 + 1_000},
    )
    assert drain(kafka, "latest", start="latest")["channels"] == {}
    report = drain(kafka, "time", start=T0 + 500)
    assert report["channels"]["town"]["messages"] == 1


def test_an_empty_topic_is_caught_up_at_once(topic: Topic, drain: Drain) -> None:
    """Draining it gives an empty report."""
    report = drain(topic())
    assert report["channels"] == {}
    assert report["window"] == {"first_event": None, "last_event": None}


def test_checkpoint_is_for_one_job_and_one_topic(
    topic: Topic, drain: Drain, live: Live
) -> None:
    """A second job, another topic and detail requested later are refused."""
    kafka, other = topic(), topic()
    produce(kafka, {"value": a_frame("a"), "timestamp_ms": T0})
    with live(kafka) as job:
        with pytest.raises(DirectoryInUse):
            drain(kafka)
        wait_until(job, lambda: "town" in job.board.snapshot.views["sds"].totals)
    with pytest.raises(CheckpointMismatch, match=other.topic):
        drain(other)
    with pytest.raises(CheckpointMismatch, match="--report-detail"):
        drain(kafka, report_detail=True)


def test_settings_of_the_model_are_those_of_the_first_start(
    topic: Topic, drain: Drain
) -> None:
    """They hold in Spark's workers, are in the report, and others are refused."""
    kafka = topic()
    produce(
        kafka,
        {"value": a_frame("a"), "timestamp_ms": T0},
        {"value": a_frame("b"), "timestamp_ms": T0 + 61_000},
    )
    report = drain(kafka, observer={"ack_deadline_ms": 60_000})
    assert report["observer"] == {"ack_deadline_ms": 60_000}
    assert report["totals"]["unwitnessed"] + report["totals"]["unacknowledged"] == 1
    assert drain(kafka)["observer"] == {"ack_deadline_ms": 60_000}
    with pytest.raises(
        CheckpointMismatch, match=r"= 60000, but \[observer\] sets .* = 120000:"
    ):
        drain(kafka, observer={"ack_deadline_ms": 120_000})


def test_a_checkpoint_that_cannot_be_written_is_named(
    topic: Topic, spark: SparkSession, tmp_path: Path
) -> None:
    """Before any record is read."""
    (tmp_path / "file").write_text("")
    settings = job_settings(topic(), tmp_path / "file" / "checkpoint")
    with (
        pytest.raises(DirectoryUnwritable, match="cannot be written to"),
        running_job(spark, settings),
    ):
        pass


@pytest.mark.parametrize("name", ["two words", "100%", "p%41x", "ü"])
def test_checkpoint_may_be_at_any_path(name: str, topic: Topic, drain: Drain) -> None:
    """Spark's state reader has problems with some paths."""
    kafka = topic()
    produce(kafka, {"value": a_frame("a"), "timestamp_ms": T0})
    assert drain(kafka, name) == drain(kafka, name)
