"""Spark's log of batches in a checkpoint, and the checksums of its files."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from streaming.batch_log import BatchLog, complete, read_batch_log
from streaming.damage import DamagedCheckpoint, has_its_checksum, remove_stale_checksums
from streaming.position import PartitionPosition, Position
from streaming.state_files import check_state
from tests.support.golden.checkpoints import CHECKPOINTS, HALF
from tests.support.streaming.damage import truncate

VERSIONS = sorted(path.name for path in CHECKPOINTS.iterdir() if path.is_dir())


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A copy of the newest golden checkpoint, which has two batches."""
    return Path(shutil.copytree(CHECKPOINTS / VERSIONS[-1], tmp_path / "checkpoint"))


@pytest.mark.parametrize("version", VERSIONS)
def test_checkpoint_of_every_release_is_accepted(version: str) -> None:
    """With its position, which has no id of the topic before 0.7."""
    log = read_batch_log(CHECKPOINTS / version)
    assert (log.planned, log.committed, log.state_partitions) == (1, 1, 2)
    assert log.position is not None
    assert log.position.records == HALF
    check_state(CHECKPOINTS / version, log)


def test_checkpoint_without_a_batch_is_accepted(tmp_path: Path) -> None:
    """New, or of a job that was killed before its first batch."""
    assert read_batch_log(tmp_path / "none") == BatchLog()
    for name in ("offsets", "commits", "sources"):
        (tmp_path / name).mkdir()
    (tmp_path / "metadata").write_text('{"id":"1"}')
    assert read_batch_log(tmp_path) == BatchLog()
    check_state(tmp_path, BatchLog())


def test_first_batch_that_was_not_committed_is_repeated(checkpoint: Path) -> None:
    """It may have written state already."""
    (checkpoint / "offsets" / "1").unlink()
    shutil.rmtree(checkpoint / "commits")
    log = read_batch_log(checkpoint)
    assert (log.planned, log.committed, log.position) == (0, None, None)
    check_state(checkpoint, log)


def test_batch_that_was_not_committed_is_repeated(checkpoint: Path) -> None:
    """The position is that before it."""
    (checkpoint / "commits" / "1").unlink()
    log = read_batch_log(checkpoint)
    assert (log.planned, log.committed) == (1, 0)
    assert log.position == read_batch_log(CHECKPOINTS / VERSIONS[-1]).position
    truncate(checkpoint / "state" / "0" / "1" / "2.changelog")
    check_state(checkpoint, log)


@pytest.mark.parametrize(
    ("damage", "place", "problem"),
    [
        (lambda c: shutil.rmtree(c / "commits"), "commits", "holds no batch"),
        (lambda c: shutil.rmtree(c / "offsets"), "offsets", "holds no batch"),
        (lambda c: (c / "offsets/0").unlink(), "offsets/0", "is missing"),
        (lambda c: (c / "offsets/1").write_text("v1\n{}"), "offsets/1", "1 lines"),
        (lambda c: (c / "offsets/1").write_bytes(b"\xff"), "offsets/1", "utf-8"),
        (lambda c: (c / "offsets/1").write_text(""), "offsets/1", "is empty"),
        (lambda c: (c / "offsets/0").write_text(""), "offsets/0", "is empty"),
        (lambda c: (c / "commits/1").write_text("v1\n[1]"), "commits/1", "object"),
        (lambda c: (c / "commits/1").write_text("v1"), "commits/1", "0 lines"),
        (lambda c: (c / "metadata").write_text('{"id":1}'), "metadata", "`str`"),
        (lambda c: (c / "metadata").mkdir(), "metadata", "cannot be read"),
    ],
)
def test_damaged_log_is_named(
    checkpoint: Path, damage: Callable[[Path], object], place: str, problem: str
) -> None:
    """In one line, with what is wrong."""
    if "cannot" in problem:
        (checkpoint / place).unlink()
    damage(checkpoint)
    with pytest.raises(DamagedCheckpoint) as caught:
        read_batch_log(checkpoint)
    assert caught.value.place == checkpoint / place
    assert problem in caught.value.problem
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("torn", "planned", "committed"),
    [
        (["commits/1"], 1, 0),
        (["commits/1", "offsets/2"], 1, 0),
        (["offsets/2"], 1, 1),
        # The next plan may reach the disk first: it is of what follows.
        (["commits/1", "whole/2"], 1, 0),
        (["commits/0", "whole/1"], 0, None),
        (["commits/0", "offsets/1", "metadata"], 0, None),
        (["offsets/0", "metadata"], None, None),
    ],
)
@pytest.mark.parametrize("content", [b"", bytes(70)])
def test_file_that_a_power_failure_left_empty_counts_as_missing(
    torn: list[str],
    planned: int | None,
    committed: int | None,
    content: bytes,
    checkpoint: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Spark repeats that batch, and the log names the file."""
    plan = (checkpoint / "offsets" / "1").read_bytes()
    for log, newest in (("commits", committed), ("offsets", planned)):
        for batch in range(0 if newest is None else newest + 1, 2):
            (checkpoint / log / str(batch)).unlink()
    for name in torn:
        log, _, batch = name.partition("/")
        is_whole = log == "whole"
        path = checkpoint / ("offsets" if is_whole else log) / batch
        path.write_bytes(plan if is_whole else content)
    found = read_batch_log(checkpoint)
    assert (found.planned, found.committed) == (planned, committed)
    complete(checkpoint, found)
    left = [int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*")]
    assert max(left, default=None) == planned
    assert (checkpoint / "state").exists() == (committed is not None)
    again = read_batch_log(checkpoint)
    assert (again.planned, again.committed, again.torn) == (planned, committed, ())
    for name in torn:
        said = f"{name} is empty, probably after a power failure"
        if name.startswith("whole"):
            batch = name.removeprefix("whole/")
            said = f"offsets/{batch} follows a batch whose commit is empty"
        assert f"{said}: the job removes this file" in caplog.text


@pytest.mark.parametrize(
    "changed",
    [
        {"clock_ms": None},
        {"records": -1},
        {"partitions": {"0": [1, 2, 3, 4, 5]}},
        {"partitions": {"zero": [1]}},
        {"partitions": [1]},
        {"topic_id": 7},
        {"ends": {"0": "1"}},
    ],
)
def test_position_of_another_shape_is_refused(changed: dict[str, object]) -> None:
    """Spark stores it as JSON, which may be changed."""
    position = Position(1, 2, 3, 4, {0: PartitionPosition(5)}, "id", {0: 6})
    with pytest.raises(msgspec.ValidationError):
        Position.from_json(position.to_json() | changed)


@pytest.mark.parametrize("name", ["clock_ms", "admitted_ms", "records", "partitions"])
def test_position_without_a_field_is_refused(name: str) -> None:
    """A default would begin the topic anew."""
    position = Position(1, 2, 3, 4, {0: PartitionPosition(5)}).to_json()
    del position[name]
    with pytest.raises(msgspec.ValidationError, match=name):
        Position.from_json(position)


def write_with_checksum(path: Path, data: bytes, chunk: int = 4) -> None:
    """Write a file as Hadoop does."""
    checksums = [
        zlib.crc32(data[start : start + chunk]).to_bytes(4, "big")
        for start in range(0, len(data), chunk)
    ]
    path.write_bytes(data)
    path.with_name(f".{path.name}.crc").write_bytes(
        b"crc\0" + chunk.to_bytes(4, "big") + b"".join(checksums)
    )


@pytest.mark.parametrize("data", [b"", b"abc", b"abcd", b"abcdefghi"])
def test_file_is_held_against_its_checksum(tmp_path: Path, data: bytes) -> None:
    """Every chunk, the last one too."""
    path = tmp_path / "7"
    write_with_checksum(path, data)
    assert has_its_checksum(path)
    for wrong in (data + b"!", data[:-1], bytes([*data[:-1], 0])):
        if wrong != data:
            path.write_bytes(wrong)
            assert not has_its_checksum(path)


@pytest.mark.parametrize("checksum", [None, b"", b"crc", b"not a checksum"])
def test_file_without_a_readable_checksum_is_right(
    tmp_path: Path, checksum: bytes | None
) -> None:
    """As for Hadoop."""
    path = tmp_path / "7"
    path.write_bytes(b"abc")
    if checksum is not None:
        (tmp_path / ".7.crc").write_bytes(checksum)
    assert has_its_checksum(path)


def test_checksums_of_deleted_files_are_removed(tmp_path: Path) -> None:
    """Others stay."""
    for name in ("7", "8"):
        write_with_checksum(tmp_path / name, b"abc")
    (tmp_path / "8").unlink()
    remove_stale_checksums(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"7", ".7.crc"}
    remove_stale_checksums(tmp_path / "none")


def test_what_a_first_plan_that_failed_has_left_is_removed(tmp_path: Path) -> None:
    """Spark begins only where there is nothing, not even an unfinished file."""
    for name in ("offsets", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "offsets" / ".0.5d0e.tmp").write_bytes(b"v1")
    complete(tmp_path, read_batch_log(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_lost_id_of_the_query_is_made_anew(checkpoint: Path) -> None:
    """Spark refuses a checkpoint without it; a new checkpoint needs none."""
    log = read_batch_log(checkpoint)
    (checkpoint / "metadata").unlink()
    complete(checkpoint, log)
    assert read_batch_log(checkpoint) == log
    assert (checkpoint / "metadata").exists()
    complete(checkpoint.parent / "new", BatchLog())
    assert not (checkpoint.parent / "new").exists()


def test_text_of_a_position_in_the_offset_log_stays() -> None:
    """Spark compares positions as text, and older releases read it."""
    partitions = {1: PartitionPosition(9, 8, 7, 6), 0: PartitionPosition(5)}
    position = Position(1, 2, 3, 4, partitions, "a", {1: 10, 0: 5}, 11, 12)
    assert json.dumps(position.to_json()) == (
        '{"clock_ms": 1, "admitted_ms": 2, "records": 3, "skipped": 4, '
        '"partitions": {"0": [5, 0, 0, 0], "1": [9, 8, 7, 6]}, "topic_id": "a", '
        '"ends": {"0": 5, "1": 10}, "requests": 11, "quiet_ms": 12}'
    )
