"""Damaged checkpoints: each file is named with its remedy, and the remedy helps."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording.recording import load_recording, load_truth
from sds_core.simulation.comparison import compare
from streaming.batch_log import read_batch_log
from streaming.damage import DamagedCheckpoint
from streaming.job import running_job
from tests.support.golden.checkpoints import HALF
from tests.support.streaming.damage import newest, truncate, without_checksums
from tests.support.streaming.jobs import job_settings, wait_for_end

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def recorded(module_topic: Callable[..., KafkaSettings]) -> KafkaSettings:
    """A topic with the recording."""
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


@pytest.fixture
def checkpoint(healthy: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(healthy, tmp_path / "checkpoint"))


def found(
    checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> DamagedCheckpoint:
    """The error with which a job refuses a checkpoint."""
    settings = job_settings(recorded, checkpoint, report_detail=True)
    with pytest.raises(DamagedCheckpoint) as caught, running_job(spark, settings):
        pass
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


def assert_goes_on(
    checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> None:
    """A job reads the rest of the recording and reports the truth."""
    settings = job_settings(recorded, checkpoint, report_detail=True)
    with running_job(spark, settings) as job:
        wait_for_end(job)
        report = job.report(0)
    assert [one for one in compare(load_truth(), report) if not one.same] == []


def in_monitor(name: str) -> Damage:
    """Truncate a file of ours."""
    return lambda checkpoint: truncate(checkpoint / "monitor" / name)


def written(name: str, text: str) -> Damage:
    """Give a file another content."""

    def damage(checkpoint: Path) -> None:
        path = checkpoint / name
        without_checksums(path.parent)
        path.write_text(text)

    return damage


def removed(*names: str) -> Damage:
    """Remove files or directories."""

    def damage(checkpoint: Path) -> None:
        for name in names:
            path = checkpoint / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def of_newest(directory: str, damage: Callable[[Path], object] = truncate) -> Damage:
    """Damage the newest file of a directory."""
    return lambda checkpoint: damage(newest(checkpoint / directory))


def with_one_partition(path: Path) -> None:
    """Change the number of partitions of the state in a file of offsets."""
    without_checksums(path.parent)
    before, name, after = path.read_text().partition('shuffle.partitions":"2"')
    assert name
    path.write_text(before + name.replace("2", "1") + after)


def without_tables(checkpoint: Path) -> None:
    """Empty the incidents, but leave a valid file."""
    path = checkpoint / "monitor" / "incidents.sqlite"
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    assert path.stat().st_size


DAMAGES: dict[str, tuple[Damage, str, str]] = {
    "commits gone": (removed("commits"), "commits", "holds no batch, although"),
    "commits emptied": (
        lambda checkpoint: [one.unlink() for one in (checkpoint / "commits").iterdir()],
        "commits",
        "holds no batch, although",
    ),
    "commits of a backup": (
        lambda checkpoint: [newest(checkpoint / "commits").unlink() for _ in range(2)],
        "commits",
        "ends with batch",
    ),
    "offsets gone": (removed("offsets"), "offsets", "holds no batch, although"),
    "both logs gone": (
        removed("offsets", "commits"),
        "offsets",
        "holds no batch, although",
    ),
    "commit truncated": (of_newest("commits"), "commits/{batch}", "checksum"),
    "commit emptied": (
        of_newest("commits", lambda path: truncate(path, 0)),
        "commits/{batch}",
        "delete it, and the job repeats this batch",
    ),
    "offsets truncated": (of_newest("offsets"), "offsets/{batch}", "checksum"),
    "offsets emptied": (
        of_newest("offsets", lambda path: truncate(path, 0)),
        "offsets/{batch}",
        "is empty",
    ),
    "offsets of another shape": (
        lambda checkpoint: written(
            f"offsets/{newest(checkpoint / 'offsets').name}", 'v1\n{}\n{"a": 1}'
        )(checkpoint),
        "offsets/{batch}",
        "has the wrong content",
    ),
    "offsets with fewer partitions of the state": (
        # Spark would read those, and find nothing wrong.
        lambda checkpoint: with_one_partition(newest(checkpoint / "offsets")),
        "state/0/1",
        "is a partition more than the 1 that offsets/{batch} names",
    ),
    "offsets before the newest missing": (
        lambda checkpoint: newest(checkpoint / "offsets", 1).unlink(),
        "offsets/{before}",
        "is missing",
    ),
    "metadata truncated": (
        lambda checkpoint: truncate(checkpoint / "metadata"),
        "metadata",
        "delete it, and the job makes a new one",
    ),
    "identity truncated": (
        in_monitor("job.json"),
        "monitor/job.json",
        'or write {"topic":',
    ),
    "identity missing": (
        removed("monitor/job.json"),
        "monitor/job.json",
        'or write {"topic":',
    ),
    "labels truncated": (
        in_monitor("labels.json"),
        "monitor/labels.json",
        'take its name out of "files"',
    ),
    "labels of other types": (
        written("monitor/labels.json", "[1,null]"),
        "monitor/labels.json",
        "Expected `str`, got `int`",
    ),
    "labels that are no text": (
        lambda checkpoint: (checkpoint / "monitor/labels.json").write_bytes(b"[\xff]"),
        "monitor/labels.json",
        "has the wrong content",
    ),
    "labels missing": (
        removed("monitor/labels.json"),
        "monitor/labels.json",
        "is missing",
    ),
    "taps emptied": (written("monitor/taps.json", ""), "monitor/taps.json", "is empty"),
    "incidents truncated": (
        in_monitor("incidents.sqlite"),
        "monitor/incidents.sqlite",
        "is damaged (database disk image is malformed)",
    ),
    "incidents emptied": (
        lambda checkpoint: truncate(checkpoint / "monitor/incidents.sqlite", 0),
        "monitor/incidents.sqlite",
        "is empty",
    ),
    "incidents without tables": (
        without_tables,
        "monitor/incidents.sqlite",
        "it has no tables",
    ),
    "incidents overwritten": (
        written("monitor/incidents.sqlite", "not a database" * 500),
        "monitor/incidents.sqlite",
        "file is not a database",
    ),
    "incidents missing": (
        removed("monitor/incidents.sqlite"),
        "monitor/incidents.sqlite",
        "to go on without the incidents of the last day and the rows that waited",
    ),
    "last byte of the acknowledgements missing": (
        # SQLite would read a zero in its place.
        lambda checkpoint: truncate(checkpoint / "monitor/acknowledgements.sqlite", -1),
        "monitor/acknowledgements.sqlite",
        "it ends within a page",
    ),
    "acknowledgements truncated": (
        in_monitor("acknowledgements.sqlite"),
        "monitor/acknowledgements.sqlite",
        "is damaged",
    ),
    "state gone": (removed("state"), "state/0/0/_metadata/schema", "is missing"),
    "partition of the state gone": (
        # Spark would read the other partitions, and find nothing wrong.
        removed("state/0/1"),
        "state/0/1",
        "is missing",
    ),
    "schema of the state missing": (
        removed("state/0/0/_metadata/schema"),
        "state/0/0/_metadata/schema",
        "is missing",
    ),
    "schema of the state truncated": (
        lambda checkpoint: truncate(checkpoint / "state/0/0/_metadata/schema"),
        "state/0/0/_metadata/schema",
        "checksum",
    ),
    "metadata of the state truncated": (
        lambda checkpoint: truncate(checkpoint / "state/0/_metadata/metadata"),
        "state/0/_metadata/metadata",
        "delete it, and Spark makes a new one; nothing is lost",
    ),
    "changelog missing": (
        lambda checkpoint: (checkpoint / "state/0/1/2.changelog").unlink(),
        "state/0/1/2.changelog",
        "is missing",
    ),
    "first changelog missing": (
        removed("state/0/1/1.changelog"),
        "state/0/1",
        "holds no snapshot before 2.changelog",
    ),
    "changelog truncated": (
        lambda checkpoint: truncate(checkpoint / "state/0/1/2.changelog"),
        "state/0/1/2.changelog",
        "checksum",
    ),
    "changelog emptied": (
        lambda checkpoint: truncate(checkpoint / "state/0/1/2.changelog", 0),
        "state/0/1/2.changelog",
        "is empty",
    ),
    "newest changelog truncated": (
        lambda checkpoint: truncate(
            checkpoint / f"state/0/1/{version(checkpoint)}.changelog"
        ),
        "state/0/1/{version}.changelog",
        "delete it and {checkpoint}/commits/{batch}, and the job repeats this batch",
    ),
    "newest changelog missing": (
        lambda checkpoint: (
            checkpoint / f"state/0/1/{version(checkpoint)}.changelog"
        ).unlink(),
        "state/0/1/{version}.changelog",
        "is missing: delete {checkpoint}/commits/{batch}, and the job repeats",
    ),
    "changelog truncated, without checksums": (
        lambda checkpoint: [
            without_checksums(checkpoint),
            truncate(checkpoint / "state/0/1/2.changelog"),
        ],
        "state/0/1/2.changelog",
        "ends too early",
    ),
    "changelog with a changed bit, without checksums": (
        lambda checkpoint: [
            without_checksums(checkpoint),
            flip(checkpoint / "state/0/1/2.changelog"),
        ],
        "state",
        "cannot be read (",
    ),
}


def version(checkpoint: Path) -> int:
    """The version of the state after the newest batch."""
    return int(newest(checkpoint / "commits").name) + 1


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_file_is_named_with_its_remedy(
    name: str, checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> None:
    """In one line, before a record is read, and the checkpoint stays as it is."""
    damage, place, said = DAMAGES[name]
    batch = int(newest(checkpoint / "commits").name)
    names = {
        "batch": batch,
        "before": batch - 1,
        "version": batch + 1,
        "checkpoint": checkpoint,
    }
    damage(checkpoint)
    before = content(checkpoint)
    error = found(checkpoint, recorded, spark)
    assert error.place == checkpoint / place.format_map(names)
    expected = said if '{"' in said else said.format_map(names)
    assert expected in str(error)
    assert content(checkpoint) == before


def content(checkpoint: Path) -> dict[Path, bytes]:
    """All files but the count of starts, and those that SQLite makes to read."""
    return {
        path.relative_to(checkpoint): path.read_bytes()
        for path in checkpoint.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm", "job.json"))
    }


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
        of_newest("commits", lambda path: truncate(path, 0)),
        lambda checkpoint: newest(checkpoint / "commits").unlink(),
    ),
    "offsets that were only planned": (
        lambda checkpoint: [
            plan_a_batch(checkpoint),
            truncate(newest(checkpoint / "offsets"), 0),
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


@pytest.mark.slow
@pytest.mark.parametrize("name", REMEDIES)
def test_remedy_helps(
    name: str, checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> None:
    """The job goes on, loses nothing and counts nothing twice."""
    damage, remedy = REMEDIES[name]
    damage(checkpoint)
    error = found(checkpoint, recorded, spark)
    remedy(checkpoint)
    if name == "identity":
        text = str(error).partition("or write ")[2].partition(" to this file")[0]
        (checkpoint / "monitor" / "job.json").write_text(text)
    assert_goes_on(checkpoint, recorded, spark)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["labels.json", "incidents.sqlite"])
def test_job_goes_on_without_a_file_that_is_taken_out_of_the_list(
    name: str, checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> None:
    """The figures are those of the whole recording."""
    truncate(checkpoint / "monitor" / name)
    found(checkpoint, recorded, spark)
    name_out_of_files(checkpoint, name)
    assert_goes_on(checkpoint, recorded, spark)
    assert (checkpoint / "monitor" / name).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["metadata of the state", "damaged old files", "no checksums"]
)
def test_files_that_spark_can_do_without_stop_no_job(
    name: str, checkpoint: Path, recorded: KafkaSettings, spark: SparkSession
) -> None:
    """It makes new ones, or does not read them."""
    match name:
        case "metadata of the state":
            (checkpoint / "state/0/_metadata/metadata").unlink()
        case "damaged old files":
            truncate(checkpoint / "offsets" / "0")
            truncate(checkpoint / "commits" / "0")
        case "no checksums":
            without_checksums(checkpoint)
    assert_goes_on(checkpoint, recorded, spark)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commits gone", "changelog with a changed bit"])
def test_command_ends_with_code_2_and_one_line(
    name: str, checkpoint: Path, recorded: KafkaSettings, tmp_path: Path
) -> None:
    """Also if Spark itself finds the damage, and no report is written."""
    if name == "commits gone":
        shutil.rmtree(checkpoint / "commits")
    else:
        without_checksums(checkpoint)
        flip(checkpoint / "state/0/1/2.changelog")
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
    lines = [line for line in result.stderr.splitlines() if "incubator" not in line]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith(f"sds-monitor: {checkpoint}/")
    assert "restore the checkpoint from a backup, or use a new --checkpoint" in lines[0]
    assert not (tmp_path / "report.json").exists()
