"""Which job may run on a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.checkpoint import (
    CheckpointIdentity,
    CheckpointInUse,
    CheckpointMismatch,
    CheckpointUnwritable,
    check_identity,
    locked_checkpoint,
    own_files,
    record_start,
)


def start(
    checkpoint: Path, topic: str = "frames", report_detail: bool = False
) -> CheckpointIdentity:
    """What a job does at its start."""
    identity = check_identity(checkpoint, topic, report_detail, has_batches=False)
    return record_start(checkpoint, identity, [])


def test_each_start_is_counted(tmp_path: Path) -> None:
    """The count is that of all jobs on the checkpoint."""
    assert [start(tmp_path).starts for _ in range(3)] == [1, 2, 3]


def test_another_topic_is_refused(tmp_path: Path) -> None:
    """The message names both topics, and the start is not counted."""
    start(tmp_path)
    with pytest.raises(CheckpointMismatch, match="begun on topic frames, not others"):
        start(tmp_path, "others")
    assert start(tmp_path).starts == 2


def test_detail_is_refused_unless_it_was_asked_for_from_the_first_start(
    tmp_path: Path,
) -> None:
    """A checkpoint that was begun with detail stores it whether asked for or not."""
    start(tmp_path / "without")
    with pytest.raises(CheckpointMismatch, match="begun without --report-detail"):
        start(tmp_path / "without", report_detail=True)
    start(tmp_path / "with", report_detail=True)
    assert start(tmp_path / "with").report_detail


def test_identity_written_by_an_older_release_is_read(tmp_path: Path) -> None:
    """The file of a release that counted no starts goes on."""
    path = own_files(tmp_path) / "job.json"
    path.parent.mkdir()
    path.write_text('{"topic":"frames","report_detail":true}')
    assert start(tmp_path, report_detail=True).starts == 1
    assert path.read_text() == (
        '{"topic":"frames","report_detail":true,"starts":1,"files":[]}'
    )


def test_checkpoint_is_locked_until_the_block_ends(tmp_path: Path) -> None:
    """A second job is refused meanwhile."""
    with (
        locked_checkpoint(tmp_path),
        pytest.raises(CheckpointInUse, match="another job runs on checkpoint"),
        locked_checkpoint(tmp_path),
    ):
        pass
    with locked_checkpoint(tmp_path):
        pass


def test_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The message has the reason."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CheckpointUnwritable, match=r"file.a cannot be written to \(Not"),
        locked_checkpoint(tmp_path / "file" / "a"),
    ):
        pass
