"""State whose bytes are not those that the job wrote, and damaged snapshots of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.protocols import PROTOCOLS
from streaming.damage import DamagedCheckpoint
from streaming.failure import JobFailed
from streaming.job import running_job
from tests.support.frames import START_MS
from tests.support.streaming.damage import flip, truncate, without_checksums
from tests.support.streaming.jobs import job_settings, wait_for_end, wait_until
from tests.support.toy.damaged import DAMAGED_TOY
from tests.support.toy.protocol import TOY

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

WRONG = (
    "the state of view 'toy:hall' in the checkpoint does not match its stored checksum"
)


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


@contextmanager
def frequent_snapshots(spark: SparkSession) -> Iterator[None]:
    """Let Spark write a snapshot of the state every few batches, not every minute."""
    store = "org.apache.spark.sql.execution.streaming.state.StateStore$"
    jvm: Any = spark._jvm  # noqa: SLF001 - no public way to stop its maintenance
    module = jvm.java.lang.Class.forName(store).getField("MODULE$").get(None)
    names = ("maintenanceInterval", "minDeltasForSnapshot")
    names = tuple(f"spark.sql.streaming.stateStore.{name}" for name in names)
    before = [spark.conf.get(name) for name in names]
    try:
        for name, value in zip(names, ("100ms", "2"), strict=True):
            spark.conf.set(name, value)
        # It begins again with the next batch, at its new pace.
        module.stopMaintenanceTask()
        yield
    finally:
        # The maintenance keeps its pace: stopping it while it works can deadlock.
        for name, value in zip(names, before, strict=True):
            spark.conf.set(name, value)


@pytest.fixture(scope="module")
def with_snapshots(
    module_topic: Callable[..., KafkaSettings],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[KafkaSettings, Path]:
    """A checkpoint whose state has snapshots, and its topic."""
    kafka = module_topic()
    checkpoint = tmp_path_factory.mktemp("snapshots") / "checkpoint"
    settings = job_settings(kafka, checkpoint, until_caught_up=False)
    state = checkpoint / "state" / "0"
    with (
        frequent_snapshots(spark),
        running_job(spark, settings, protocols=(*PROTOCOLS, TOY)) as job,
    ):
        for number in range(50):
            write([move(number)], kafka)
            wait_until(job, lambda n=number: moves(job) == n + 1)
            if all(list((state / p).glob("*.zip")) for p in ("0", "1")):
                break
        else:
            pytest.fail("there is no snapshot")
    # The newest snapshot may be of a batch that was stopped before it was committed.
    settings = job_settings(kafka, checkpoint)
    with running_job(spark, settings, protocols=(*PROTOCOLS, TOY)) as job:
        wait_for_end(job)
    return kafka, checkpoint


def moves(job: Any) -> int:
    """Number of moves that a job has counted."""
    rooms = job.board.snapshot.views["toy"].totals
    return rooms["hall"].moves if "hall" in rooms else 0


@pytest.fixture
def snapshots(with_snapshots: tuple[KafkaSettings, Path], tmp_path: Path) -> Path:
    """A copy of the checkpoint."""
    return Path(shutil.copytree(with_snapshots[1], tmp_path / "checkpoint"))


def newest_snapshot(partition: Path) -> Path:
    """The newest snapshot of a partition of the state."""
    return max(partition.glob("*.zip"), key=lambda path: int(path.stem))


def newest_table(partition: Path) -> Path:
    """A large file of the newest snapshot of a partition."""
    return max((partition / "SSTs").glob("*.sst"))


def remove_older(partition: Path) -> None:
    """Remove what Spark removes after a hundred batches."""
    snapshot = int(newest_snapshot(partition).stem)
    for path in [*partition.glob("*.zip"), *partition.glob("*.changelog")]:
        if int(path.stem) < snapshot + (path.suffix == ".changelog"):
            path.unlink()


DAMAGED = [newest_snapshot, newest_table]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_damaged_snapshot_is_made_up_for_by_changelogs(
    damaged: Callable[[Path], Path],
    with_snapshots: tuple[KafkaSettings, Path],
    snapshots: Path,
    spark: SparkSession,
) -> None:
    """As long as they go back to an older snapshot, or to the first batch."""
    partition = partition_with_tables(snapshots)
    truncate(damaged(partition))
    settings = job_settings(with_snapshots[0], snapshots)
    with running_job(spark, settings, protocols=(*PROTOCOLS, TOY)) as job:
        wait_for_end(job)
        assert moves(job) == job.board.snapshot.job.records


@pytest.mark.parametrize("damaged", DAMAGED)
def test_damaged_snapshot_that_nothing_makes_up_for_is_named(
    damaged: Callable[[Path], Path],
    with_snapshots: tuple[KafkaSettings, Path],
    snapshots: Path,
    spark: SparkSession,
) -> None:
    """Spark itself names a changelog that it never needed before."""
    partition = partition_with_tables(snapshots)
    remove_older(partition)
    truncate(damaged(partition))
    settings = job_settings(with_snapshots[0], snapshots)
    with (
        pytest.raises(DamagedCheckpoint, match="does not have the checksum") as caught,
        running_job(spark, settings, protocols=(*PROTOCOLS, TOY)),
    ):
        pass
    assert caught.value.place == damaged(partition)


def test_changed_bit_in_a_table_without_checksum_is_named(
    with_snapshots: tuple[KafkaSettings, Path], snapshots: Path, spark: SparkSession
) -> None:
    """Spark alone would leave out the views after it without an error."""
    without_checksums(snapshots)
    table = newest_table(partition_with_tables(snapshots))
    flip(table)
    settings = job_settings(with_snapshots[0], snapshots)
    with (
        pytest.raises(DamagedCheckpoint, match=r"is damaged \(.*restore") as caught,
        running_job(spark, settings, protocols=(*PROTOCOLS, TOY)),
    ):
        pass
    assert caught.value.place == table
    assert len(str(caught.value).splitlines()) == 1


def test_snapshot_that_python_cannot_open_is_named(
    with_snapshots: tuple[KafkaSettings, Path], snapshots: Path, spark: SparkSession
) -> None:
    """Its directory asks for a version of the format that does not exist."""
    without_checksums(snapshots)
    partition = partition_with_tables(snapshots)
    remove_older(partition)
    archive = newest_snapshot(partition)
    data = bytearray(archive.read_bytes())
    data[data.index(b"PK\x01\x02") + 6] = 255
    # Java does not look at the version, but at the data.
    data[50] ^= 4
    archive.write_bytes(data)
    settings = job_settings(with_snapshots[0], snapshots)
    with (
        pytest.raises(DamagedCheckpoint) as caught,
        running_job(spark, settings, protocols=(*PROTOCOLS, TOY)),
    ):
        pass
    assert len(str(caught.value).splitlines()) == 1


def test_snapshot_without_checksums_is_accepted(
    with_snapshots: tuple[KafkaSettings, Path], snapshots: Path, spark: SparkSession
) -> None:
    """If nothing in it is damaged."""
    without_checksums(snapshots)
    remove_older(partition_with_tables(snapshots))
    settings = job_settings(with_snapshots[0], snapshots)
    with running_job(spark, settings, protocols=(*PROTOCOLS, TOY)) as job:
        wait_for_end(job)
        assert moves(job) == job.board.snapshot.job.records


def partition_with_tables(checkpoint: Path) -> Path:
    """A partition of the state whose snapshot has a large file."""
    for partition in sorted((checkpoint / "state" / "0").glob("[0-9]")):
        if list(partition.glob("SSTs/*.sst")):
            return partition
    pytest.fail("no snapshot holds a view")
