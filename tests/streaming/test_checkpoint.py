"""Which job may run on a checkpoint."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from sds_core.observer.settings import DEFAULTS
from sds_core.observer.settings_table import values_of
from streaming.checkpoint import (
    CheckpointIdentity,
    CheckpointMismatch,
    check_identity,
    locked_checkpoint,
    own_files,
    record_start,
)
from streaming.damage import DamagedCheckpoint
from streaming.directories import DirectoryInUse, DirectoryUnwritable
from tests.support.small_disk import needs_root, small_disk


def start(
    checkpoint: Path,
    topic: str = "frames",
    report_detail: bool = False,
    **observer: int | float,
) -> CheckpointIdentity:
    """What a job does at its start."""
    identity = check_identity(
        checkpoint, topic, report_detail, has_batches=False, observer=observer
    )
    return record_start(checkpoint, identity, [])


def test_each_start_is_counted(tmp_path: Path) -> None:
    """The count is that of all jobs on the checkpoint."""
    assert [start(tmp_path).starts for _ in range(3)] == [1, 2, 3]


def test_another_topic_is_refused(tmp_path: Path) -> None:
    """The message names both topics, and the start is not counted."""
    start(tmp_path)
    with pytest.raises(CheckpointMismatch, match="begun with topic frames, not others"):
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
    """The file of a release that counted no starts goes on.

    Releases up to 0.15 refuse the new one, since they would not find what the ledger
    has: they compare the topic.
    """
    path = own_files(tmp_path) / "job.json"
    path.parent.mkdir()
    path.write_text('{"topic":"frames","report_detail":true}')
    assert start(tmp_path, report_detail=True).starts == 1
    assert path.read_text().startswith(
        '{"topic":"(of sds-monitor 0.16 or newer)","report_detail":true,"starts":1,'
    )
    assert start(tmp_path).topic == "frames"


def test_checkpoint_has_the_settings_of_the_model_of_its_first_start(
    tmp_path: Path,
) -> None:
    """A later start may repeat them, or give none."""
    begun = start(tmp_path, ack_deadline_ms=60_000).observer
    assert begun["ack_deadline_ms"] == 60_000
    assert begun["horizon_ms"] == DEFAULTS.horizon_ms
    assert start(tmp_path).observer == begun
    assert start(tmp_path, ack_deadline_ms=60_000).observer == begun


def test_another_setting_of_the_model_is_refused(tmp_path: Path) -> None:
    """The message names both values, and the start is not counted."""
    start(tmp_path, ack_deadline_ms=60_000)
    both = (
        r"begun with ack_deadline_ms = 60000, but \[observer\] sets "
        "ack_deadline_ms = 90000"
    )
    with pytest.raises(CheckpointMismatch, match=both):
        start(tmp_path, ack_deadline_ms=90_000)
    assert start(tmp_path).starts == 2


def test_checkpoint_of_an_older_release_has_the_defaults(tmp_path: Path) -> None:
    """It was begun with them."""
    path = own_files(tmp_path) / "job.json"
    path.parent.mkdir()
    path.write_text('{"topic":"frames","report_detail":false,"starts":3,"files":[]}')
    both = r"= 120000, but \[observer\] sets ack_deadline_ms = 60000"
    with pytest.raises(CheckpointMismatch, match=both):
        start(tmp_path, ack_deadline_ms=60_000)
    assert start(tmp_path).observer == values_of(DEFAULTS)


@pytest.mark.parametrize("t_min_ms", [120_000, 180_000])
def test_repair_times_that_an_older_release_allowed_continue(
    tmp_path: Path, t_min_ms: int
) -> None:
    """No rebuild is needed."""
    start(tmp_path)
    path = own_files(tmp_path) / "job.json"
    text = path.read_text()
    path.write_text(text.replace('"t_min_ms":30000', f'"t_min_ms":{t_min_ms}'))
    # A table with the stored value would be refused.
    with pytest.raises(CheckpointMismatch, match=r"omit t_min_ms from \[observer\]$"):
        start(tmp_path, t_min_ms=30_000)
    assert start(tmp_path).observer["t_min_ms"] == t_min_ms


def test_stored_settings_that_are_not_allowed_are_damage(tmp_path: Path) -> None:
    """The message names the file."""
    start(tmp_path)
    path = own_files(tmp_path) / "job.json"
    path.write_text(path.read_text().replace(":120000", ":-1"))
    with pytest.raises(DamagedCheckpoint, match=r"job\.json"):
        start(tmp_path)


def test_checkpoint_is_locked_until_the_block_ends(tmp_path: Path) -> None:
    """A second job is refused meanwhile."""
    with (
        locked_checkpoint(tmp_path),
        pytest.raises(DirectoryInUse, match="another job runs on checkpoint"),
        locked_checkpoint(tmp_path),
    ):
        pass
    with locked_checkpoint(tmp_path):
        pass


def test_new_checkpoint_is_for_its_user_alone(tmp_path: Path) -> None:
    """It holds ids of messages and participants; what exists keeps its mode."""
    tmp_path.chmod(0o755)
    for directory, mode in ((tmp_path / "new", 0o700), (tmp_path, 0o755)):
        with locked_checkpoint(directory):
            assert directory.stat().st_mode & 0o777 == mode


def test_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The message has the reason."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(DirectoryUnwritable, match=r"file.a cannot be written to \(Not"),
        locked_checkpoint(tmp_path / "file" / "a"),
    ):
        pass


@needs_root
def test_start_on_a_full_disk_does_not_call_for_another_directory(
    tmp_path: Path,
) -> None:
    """The same directory can be used once there is space."""
    with (
        small_disk(tmp_path / "disk", "1m", "nr_inodes=1") as disk,
        pytest.raises(OSError, match="No space left on device") as caught,
        locked_checkpoint(disk / "a"),
    ):
        pass
    assert caught.value.errno == errno.ENOSPC


def test_files_are_listed_and_must_be_there(tmp_path: Path) -> None:
    """A file that is missing at the next start is named."""
    identity = check_identity(tmp_path, "frames", False, has_batches=False)
    own_files(tmp_path).mkdir()
    for name in ("labels.json", "incidents.sqlite"):
        (own_files(tmp_path) / name).write_text("content")
    record_start(tmp_path, identity, ["labels.json", "incidents.sqlite"])
    again = check_identity(tmp_path, "frames", False, has_batches=True)
    assert again.files == ["incidents.sqlite", "labels.json"]
    (own_files(tmp_path) / "labels.json").unlink()
    with pytest.raises(DamagedCheckpoint, match=r"labels\.json is missing: restore"):
        check_identity(tmp_path, "frames", False, has_batches=True)


def test_files_of_a_checkpoint_of_an_older_release_are_those_that_are_there(
    tmp_path: Path,
) -> None:
    """It lists none; 0.1 had neither taps nor incidents."""
    own_files(tmp_path).mkdir()
    (own_files(tmp_path) / "job.json").write_text('{"topic":"a","report_detail":true}')
    (own_files(tmp_path) / "labels.json").write_text("[]")
    identity = check_identity(tmp_path, "a", False, has_batches=True)
    assert identity.files == ["labels.json"]
    (own_files(tmp_path) / "incidents.sqlite").write_text("")
    with pytest.raises(DamagedCheckpoint, match=r"incidents\.sqlite is empty"):
        check_identity(tmp_path, "a", False, has_batches=True)


def test_empty_file_of_a_first_start_that_was_killed_is_accepted(
    tmp_path: Path,
) -> None:
    """There was no batch yet, so it never held anything."""
    own_files(tmp_path).mkdir()
    (own_files(tmp_path) / "incidents.sqlite").write_text("")
    assert start(tmp_path).starts == 1


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"topic":7,"report_detail":false}', '{"topic":"frames"}', "\xff"],
)
def test_identity_that_cannot_be_read_is_named(tmp_path: Path, content: str) -> None:
    """The remedy has the text to write instead."""
    path = own_files(tmp_path) / "job.json"
    path.parent.mkdir()
    path.write_text(content, "latin-1")
    with pytest.raises(DamagedCheckpoint, match=r'or write {"topic":"frames",') as it:
        start(tmp_path)
    assert it.value.place == path
    text = it.value.remedy.partition("or write ")[2].partition(" to this file")[0]
    path.write_text(text)
    assert start(tmp_path).starts == 1


def test_identity_that_is_missing_is_named_if_there_was_a_batch(tmp_path: Path) -> None:
    """Otherwise the checkpoint is new."""
    with pytest.raises(DamagedCheckpoint, match=r"job\.json is missing"):
        check_identity(tmp_path, "frames", False, has_batches=True)


def test_remedy_for_a_missing_identity_keeps_the_settings_of_the_model(
    tmp_path: Path,
) -> None:
    """Without them, the next start would judge by the defaults."""
    begun = start(tmp_path, ack_deadline_ms=60_000).observer
    path = own_files(tmp_path) / "job.json"
    path.write_text("{")
    with pytest.raises(DamagedCheckpoint) as caught:
        start(tmp_path, ack_deadline_ms=60_000)
    text = caught.value.remedy.partition("or write ")[2].partition(" to this file")[0]
    path.write_text(text)
    assert start(tmp_path).observer == begun
