"""Jobs go on after the remedy for a damaged checkpoint, and where none is needed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
from connectors.recording import load_truth
from sds_core.simulation.comparison import compare
from streaming.job import running_job
from tests.support.streaming.damage import (
    Damage,
    flip,
    newest,
    newest_values,
    of_newest,
    removed,
    truncate,
    version,
    without_checksums,
)
from tests.support.streaming.jobs import job_settings, refusal, wait_for_end

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def checkpoint(healthy: Path, tmp_path: Path) -> Path:
    """A copy of a healthy one."""
    return Path(shutil.copytree(healthy, tmp_path / "checkpoint"))


def assert_goes_on(
    checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> None:
    """A job reads the rest of the recording and reports the truth."""
    settings = job_settings(recorded, checkpoint, report_detail=True)
    with running_job(spark, settings) as job:
        wait_for_end(job)
        report = job.report(0)
    assert [one for one in compare(load_truth(), report) if not one.same] == []


def name_out_of_files(checkpoint: Path, name: str) -> None:
    """Move a file away, and go on without it."""
    (checkpoint / "monitor" / name).unlink()
    path = checkpoint / "monitor" / "job.json"
    identity = json.loads(path.read_text())
    identity["files"].remove(name)
    path.write_text(json.dumps(identity))


def plan_a_batch(checkpoint: Path) -> None:
    """Leave the checkpoint as a job leaves it that is killed in its newest batch."""
    newest(checkpoint / "commits").unlink()


REMEDIES: dict[str, tuple[Damage, Damage]] = {
    "newest commit": (
        of_newest("commits"),
        lambda checkpoint: newest(checkpoint / "commits").unlink(),
    ),
    "offsets that were only planned": (
        lambda checkpoint: [
            plan_a_batch(checkpoint),
            truncate(newest(checkpoint / "offsets")),
        ],
        lambda checkpoint: newest(checkpoint / "offsets").unlink(),
    ),
    "newest changelog": (
        lambda checkpoint: truncate(
            checkpoint / f"state/0/0/{version(checkpoint)}.changelog"
        ),
        lambda checkpoint: [
            (checkpoint / f"state/0/0/{version(checkpoint)}.changelog").unlink(),
            newest(checkpoint / "commits").unlink(),
        ],
    ),
    "metadata": (
        lambda checkpoint: truncate(checkpoint / "metadata"),
        removed("metadata"),
    ),
    "identity": (
        removed("monitor/job.json"),
        lambda checkpoint: None,
    ),
}


@pytest.mark.parametrize("name", REMEDIES)
def test_remedy_helps(
    name: str, checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> None:
    """The job goes on, loses nothing and counts nothing twice."""
    damage, remedy = REMEDIES[name]
    damage(checkpoint)
    error = refusal(checkpoint, recorded, spark)
    remedy(checkpoint)
    if name == "identity":
        text = str(error).partition("or write ")[2].partition(" to this file")[0]
        (checkpoint / "monitor" / "job.json").write_text(text)
    assert_goes_on(checkpoint, recorded, spark)


def test_job_goes_on_without_a_ledger_that_is_taken_out_of_the_list(
    checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> None:
    """The figures are those of the whole recording."""
    truncate(checkpoint / "monitor" / "ledger.sqlite")
    refusal(checkpoint, recorded, spark)
    name_out_of_files(checkpoint, "ledger.sqlite")
    assert_goes_on(checkpoint, recorded, spark)
    assert (checkpoint / "monitor" / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    "name",
    [
        "metadata of the state",
        "damaged old files",
        "no checksums",
        "commit emptied by a power failure",
        "plan emptied by a power failure",
    ],
)
def test_files_that_spark_can_do_without_stop_no_job(
    name: str, checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> None:
    """It makes new ones, repeats a batch, or does not read them."""
    match name:
        case "commit emptied by a power failure":
            truncate(newest(checkpoint / "commits"), 0)
        case "plan emptied by a power failure":
            plan_a_batch(checkpoint)
            truncate(newest(checkpoint / "offsets"), 0)
        case "metadata of the state":
            (checkpoint / "state/0/_metadata/metadata").unlink()
        case "damaged old files":
            truncate(checkpoint / "offsets" / "0")
            truncate(checkpoint / "commits" / "0")
        case "no checksums":
            without_checksums(checkpoint)
    assert_goes_on(checkpoint, recorded, spark)


@pytest.mark.parametrize("name", ["commits gone", "changelog with a changed bit"])
def test_command_ends_with_code_2_and_one_line(
    name: str, checkpoint: Path, recorded: KafkaSettings, tmp_path: Path
) -> None:
    """Also if Spark itself finds the damage, and no report is written."""
    if name == "commits gone":
        shutil.rmtree(checkpoint / "commits")
    else:
        without_checksums(checkpoint)
        flip(newest_values(checkpoint))
    result = subprocess.run(
        [
            *(sys.executable, "-m", "streaming.cli", "run", "--until-caught-up"),
            *("--bootstrap", recorded.bootstrap, "--topic", recorded.topic),
            *("--checkpoint", str(checkpoint), "--metrics-port", "0"),
            *("--report", str(tmp_path / "report.json")),
        ],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert result.returncode == 2
    lines = [
        line
        for line in result.stderr.splitlines()
        if "incubator" not in line and " rules: " not in line
    ]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith(f"sds-monitor: {checkpoint}/")
    assert "restore the checkpoint from a backup, or use a new --checkpoint" in lines[0]
    assert not (tmp_path / "report.json").exists()
