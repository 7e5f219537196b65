"""A real job on disks that lose what was not synced, and on disks that fail."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from connectors.storage.disk import REMEDIES
from streaming.damage import LEDGER
from streaming.job import running_job
from tests.support.interposed.library import made_library
from tests.support.interposed.power import Disk, Machine, Operation, read_log
from tests.support.streaming.command import started
from tests.support.streaming.jobs import job_settings, wait_for_end

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(3_600),
]

FLAGS = ("--until-caught-up", "--report-detail", "--max-batch-records", "200")
CHANCES = 8
"""Power failures at any moment, besides those around each commit of the ledger."""


@pytest.fixture(scope="module")
def kafka(module_topic: Callable[..., KafkaSettings]) -> KafkaSettings:
    """A topic with the recording."""
    records = load_recording()
    kafka = module_topic(partitions=0)
    ensure_frames_topic(kafka, partitions_of(records))
    write(records, kafka)
    return kafka


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library between program and disk."""
    return made_library("disk", tmp_path_factory.mktemp("library"))


def run(
    kafka: KafkaSettings, directory: Path, library: Path, **environment: str
) -> tuple[int, str]:
    """Read all that the topic holds with the library; returns code and errors."""
    directory.mkdir(exist_ok=True)
    variables = {"LD_PRELOAD": str(library), **environment}
    with started(kafka, directory, *FLAGS, environment=variables) as process:
        code = process.wait(300)
    return code, (directory / "stderr").read_text()


class Recorded(NamedTuple):
    """What a job did to its checkpoint."""

    checkpoint: Path
    operations: list[Operation]


@pytest.fixture(scope="module")
def recorded(
    kafka: KafkaSettings, library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Recorded:
    """All that a job did to its checkpoint, from the first start to its end."""
    directory = tmp_path_factory.mktemp("recorded")
    root, log = directory / "checkpoint", directory / "log"
    root.mkdir()
    under, to = {"INTERPOSED_UNDER": str(root)}, {"INTERPOSED_LOG": str(log)}
    code, errors = run(kafka, directory, library, **under, **to)
    assert code == 0, errors
    return Recorded(root, read_log(log))


def test_spark_syncs_none_of_its_files(recorded: Recorded) -> None:
    """So the job does it; when this fails, `NewFiles` may be unnecessary."""
    operations = recorded.operations
    (spark,) = {
        one.process
        for one in operations
        if one.kind == "r" and one.data.endswith(b"/offsets/0")
    }
    assert not [one for one in operations if one.kind == "s" and one.process == spark]


def report_of(
    spark: SparkSession, kafka: KafkaSettings, checkpoint: Path
) -> dict[str, Any]:
    """Continue on a checkpoint, and report."""
    settings = job_settings(kafka, checkpoint, rows=200, report_detail=True)
    with running_job(spark, settings) as job:
        wait_for_end(job)
        report = job.report(0)
    del report["generated_at"]
    return report


def moments(operations: list[Operation], random: Random) -> list[int]:
    """When the power fails: around each commit of the ledger, and at any moment."""
    commits = [
        number
        for number, one in enumerate(operations)
        if one.kind == "s" and one.path.endswith(f"/monitor/{LEDGER}-wal")
    ]
    around = {number + step for number in commits for step in (0, 1)}
    chances = {random.randrange(len(operations)) for _ in range(CHANCES)}
    return sorted(around | chances)


@pytest.mark.parametrize("disk", [Disk.STRICT, Disk.EAGER], ids=lambda disk: disk.value)
def test_job_continues_by_itself_after_a_power_failure(
    disk: Disk,
    recorded: Recorded,
    kafka: KafkaSettings,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """On what the disk has then, with the report of an undisturbed job."""
    undisturbed = report_of(spark, kafka, tmp_path / "undisturbed")
    assert undisturbed["totals"]["messages"] == 282
    due = moments(recorded.operations, Random(1))
    machine = Machine(recorded.checkpoint)
    for number, one in enumerate(recorded.operations):
        if number in due:
            # Spark still writes into the one before.
            place = tmp_path / f"checkpoint-{number}"
            machine.lay_out(disk, place)
            assert report_of(spark, kafka, place) == undisturbed, (number, one.path)
        machine.apply(one)


@pytest.mark.parametrize("part", ["offsets", "commits", "state", "monitor"])
def test_disk_that_fails_under_a_part_of_the_checkpoint_ends_in_one_line(
    part: str, kafka: KafkaSettings, library: Path, spark: SparkSession, tmp_path: Path
) -> None:
    """With code 4 and what to do; without the fault, the job continues."""
    under = str(tmp_path / "checkpoint" / part)
    code, errors = run(
        kafka, tmp_path, library, INTERPOSED_UNDER=under, INTERPOSED_AT="5"
    )
    assert code == 4, errors
    lines = [one for one in errors.splitlines() if os.strerror(5) in one]
    assert len(lines) == 1, errors
    assert REMEDIES[5] in lines[0]
    assert "Traceback" not in errors
    undisturbed = report_of(spark, kafka, tmp_path / "undisturbed")
    assert report_of(spark, kafka, tmp_path / "checkpoint") == undisturbed
