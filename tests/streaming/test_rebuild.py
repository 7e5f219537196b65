"""A new checkpoint of all that a topic holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from streaming.batch_log import read_batch_log
from streaming.cli import group, starting
from tests.support.golden.checkpoints import HALF
from tests.support.kafka import KafkaTopic
from tests.support.streaming.jobs import JobRunner

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_rebuilt_checkpoint_is_that_of_an_undisturbed_job(
    topic: Callable[..., KafkaSettings],
    drain: JobRunner,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With other partitions; it continues as the job does, and writes nothing."""
    monkeypatch.setattr(starting, "make_session", lambda settings: spark)
    # The session stays for the tests to come.
    monkeypatch.setattr(starting, "stop_session", lambda spark: None)
    records = load_recording()
    kafka = topic(partitions=0)
    ensure_frames_topic(kafka, partitions_of(records))
    write(records[:HALF], kafka)
    KafkaTopic(kafka).write(b"\xff garbage", time_ms=records[0].timestamp_ms)
    with KafkaTopic(kafka).admin() as admin:
        before = {*admin.list_topics()} - {"__consumer_offsets"}
        groups = admin.list_groups()
    report = tmp_path / "report.json"
    flags = (
        *("--bootstrap", kafka.bootstrap, "--topic", kafka.topic),
        *("--checkpoint", str(tmp_path / "b"), "--report", str(report)),
    )
    partitions = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions + 1))
    try:
        # What the file says of the live job's start does not hold.
        latest = ("--start", "latest")
        rebuilt = CliRunner().invoke(group, ["rebuild", *flags, *latest])
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    assert rebuilt.exit_code == 0, rebuilt.output
    assert f"{HALF + 1:,} records of" in rebuilt.output
    assert read_batch_log(tmp_path / "b").state_partitions == partitions + 1
    assert json.loads(report.read_text())["totals"]["messages"]
    with KafkaTopic(kafka).admin() as admin:
        # A broker makes this one for the first client that reads.
        assert {*admin.list_topics()} - {"__consumer_offsets"} == before
        assert admin.list_groups() == groups
    again = CliRunner().invoke(group, ["rebuild", *flags], standalone_mode=False)
    assert "already has records of the topic: give a new directory" in str(
        again.exception
    )

    write(records[HALF:], kafka)
    continued, usual = drain(kafka, "b"), drain(kafka)
    for part in ("channels", "totals"):
        assert continued[part] == usual[part]
