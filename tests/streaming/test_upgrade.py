"""A job continues from the checkpoint of every release."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording, load_truth
from sds_core.simulation.comparison import compare
from streaming.batch_log import read_batch_log
from streaming.job import running_job
from tests.support.golden.checkpoints import CHECKPOINTS, HALF, TOPIC
from tests.support.identities import assert_identities
from tests.support.streaming.jobs import TIMEOUT_S, job_settings, wait_for_end

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

_TOPIC_ID = re.compile('"topic_id": "[^"]*"')
DECIDED_BEFORE = {
    ("", "gaps.opened"): (26, 22),
    ("", "gaps.tap_gap"): (11, 7),
    ("ana-and-ben", "gaps.opened"): (8, 4),
    ("ana-and-ben", "gaps.tap_gap"): (6, 2),
}
"""Truth and report of four ids in the first half: releases before 0.8 took them to be
older than the monitor's start, because they knew no earlier histories."""

BEFORE_0_8 = ("0.1.0", "0.3.0", "0.4.0", "0.5.0", "0.7.0")

VERSIONS = sorted(path.name for path in CHECKPOINTS.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def recorded(kafka_broker: EmbeddedBroker) -> KafkaSettings:
    """The whole recording, of which the checkpoints have read the first half."""
    records = load_recording()
    kafka = KafkaSettings(kafka_broker.bootstrap, TOPIC, TIMEOUT_S)
    ensure_frames_topic(kafka, partitions_of(records))
    write(records, kafka)
    return kafka


def set_topic_id(checkpoint: Path, kafka: KafkaSettings) -> None:
    """Let a checkpoint that names an id of its topic name that of the topic here."""
    with closing(TopicOffsets(kafka)) as offsets:
        here = offsets.describe().id
    for path in (checkpoint / "offsets").iterdir():
        text = path.read_text()
        path.write_text(_TOPIC_ID.sub(f'"topic_id": "{here}"', text))


@pytest.mark.parametrize("version", VERSIONS)
def test_checkpoint_of_an_older_release_continues(
    version: str, recorded: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    """With the second half read on top, the report equals the truth.

    What an older release has decided by its own rules stays. Releases before 0.7.0
    knew no id of the topic: its position takes one now.
    """
    checkpoint = tmp_path / version
    shutil.copytree(CHECKPOINTS / version, checkpoint)
    set_topic_id(checkpoint, recorded)
    settings = job_settings(recorded, checkpoint, report_detail=True)
    with running_job(spark, settings) as job:
        assert job.progress.position is not None
        assert job.progress.position.records == HALF
        assert job.board.snapshot.views["sds"].totals
        wait_for_end(job)
        report = job.report(0)
        assert_identities(report)
    position = read_batch_log(checkpoint).position
    assert position is not None
    assert position.topic_id is not None
    differing = {
        (one.channel, one.figure): (one.truth, one.found)
        for one in compare(load_truth(), report)
        if not one.same
    }
    assert differing == (DECIDED_BEFORE if version in BEFORE_0_8 else {})


def test_golden_checkpoints_exist() -> None:
    """Otherwise the test above would check nothing."""
    assert VERSIONS
