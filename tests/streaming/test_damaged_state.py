"""State whose bytes are not those that the job wrote, and damaged snapshots of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.protocols import PROTOCOLS
from streaming.damage import DamagedCheckpoint
from streaming.failure import JobFailed
from streaming.job import running_job
from tests.support.frames import START_MS
from tests.support.streaming.jobs import job_settings, wait_for_end, wait_until
from tests.support.toy.damaged import DAMAGED_TOY
from tests.support.toy.protocol import TOY

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

WRONG = "the state of view 'toy:hall' in the checkpoint does not have the checksum"


def move(number: int) -> TopicRecord:
    """A move in the hall."""
    headers = (("protocol", b"toy"),)
    time_ms = START_MS + 1_000 * number
    return TopicRecord(0, time_ms, b"hall", b"hall/ada/1", headers)


def test_view_with_a_wrong_checksum_is_named_at_the_start(
    module_topic: Callable[..., KafkaSettings], spark: SparkSession, tmp_path: Path
) -> None:
    """Although only its totals are read then."""
    kafka = module_topic()
    write([move(1)], kafka)
    settings = job_settings(kafka, tmp_path / "a")
    with running_job(spark, settings, protocols=(*PROTOCOLS, DAMAGED_TOY)) as job:
        wait_for_end(job)
    with (
        pytest.raises(DamagedCheckpoint, match=f"{WRONG}.*restore the checkpoint"),
        running_job(spark, settings, protocols=(*PROTOCOLS, TOY)),
    ):
        pass


def test_view_with_a_wrong_checksum_stops_a_running_job(
    module_topic: Callable[..., KafkaSettings], spark: SparkSession, tmp_path: Path
) -> None:
    """At the next batch that needs it."""
    kafka = module_topic()
    write([move(1)], kafka)
    settings = job_settings(kafka, tmp_path / "a", until_caught_up=False)
    with running_job(spark, settings, protocols=(*PROTOCOLS, DAMAGED_TOY)) as job:
        wait_until(job, lambda: "hall" in job.board.snapshot.views["toy"].totals)
        write([move(2)], kafka)
        with pytest.raises(JobFailed, match=WRONG) as caught:
            wait_until(job, lambda: False, 240)
    assert caught.value.final
