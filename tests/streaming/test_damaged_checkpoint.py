"""Damaged checkpoints: each file is named with its remedy."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
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
from tests.support.streaming.jobs import refusal

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.fixture
def checkpoint(healthy: Path, tmp_path: Path) -> Path:
    """A copy of a healthy one."""
    return Path(shutil.copytree(healthy, tmp_path / "checkpoint"))


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


def with_one_partition(path: Path) -> None:
    """Change the number of partitions of the state in a file of offsets."""
    without_checksums(path.parent)
    before, name, after = path.read_text().partition('shuffle.partitions":"2"')
    assert name
    path.write_text(before + name.replace("2", "1") + after)


def without_tables(checkpoint: Path) -> None:
    """Empty the ledger, but leave a valid file."""
    path = checkpoint / "monitor" / "ledger.sqlite"
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
    "commit truncated": (
        of_newest("commits"),
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
        "is an extra partition: the number of partitions in offsets/{batch} is 1",
    ),
    "offsets before the newest missing": (
        lambda checkpoint: newest(checkpoint / "offsets", 1).unlink(),
        "offsets/{before}",
        "is missing",
    ),
    "metadata truncated": (
        lambda checkpoint: truncate(checkpoint / "metadata"),
        "metadata",
        "delete the damaged file; the job makes a new one",
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
    "ledger truncated": (
        in_monitor("ledger.sqlite"),
        "monitor/ledger.sqlite",
        "is damaged (database disk image is malformed)",
    ),
    "ledger emptied": (
        lambda checkpoint: truncate(checkpoint / "monitor/ledger.sqlite", 0),
        "monitor/ledger.sqlite",
        "is empty",
    ),
    "ledger without tables": (
        without_tables,
        "monitor/ledger.sqlite",
        "the database has no tables",
    ),
    "ledger overwritten": (
        written("monitor/ledger.sqlite", "not a database" * 500),
        "monitor/ledger.sqlite",
        "file is not a database",
    ),
    "ledger missing": (
        removed("monitor/ledger.sqlite"),
        "monitor/ledger.sqlite",
        "to continue without the incidents and shown verdicts of the last day, the "
        "rows that waited",
    ),
    "last byte of the ledger missing": (
        # SQLite would read a zero in its place.
        lambda checkpoint: truncate(checkpoint / "monitor/ledger.sqlite", -1),
        "monitor/ledger.sqlite",
        "the last page of the database is incomplete",
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
        "delete the damaged file; Spark makes a new file, and nothing is lost",
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
    "changelog that cannot be decompressed, without checksums": (
        lambda checkpoint: [
            without_checksums(checkpoint),
            overwrite(checkpoint / "state/0/1/2.changelog"),
        ],
        "state",
        "cannot be read (net.jpountz.lz4.LZ4Exception",
    ),
    "changelog with a changed bit, without checksums": (
        lambda checkpoint: [
            without_checksums(checkpoint),
            flip(newest_values(checkpoint)),
        ],
        "state",
        "cannot be read (",
    ),
}


def overwrite(path: Path) -> None:
    """Replace the first compressed bytes, which follow 21 bytes about them."""
    data = bytearray(path.read_bytes())
    data[21:61] = b"\xff" * 40
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
    error = refusal(checkpoint, recorded, spark)
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
