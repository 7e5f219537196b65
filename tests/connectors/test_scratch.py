"""Scratch directories of killed processes are removed, those in use are not."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connectors.scratch import claim_scratch, scratch_root

_CLAIM = """
import sys
from pathlib import Path
from connectors.scratch import claim_scratch

print(claim_scratch(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


@contextmanager
def claiming(root: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """Run a process that claims a scratch directory, and kill it after the block."""
    with subprocess.Popen(
        [sys.executable, "-c", _CLAIM, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield Path(process.stdout.readline().strip()), process
        finally:
            process.kill()


def left_by_a_killed_process(root: Path) -> Path:
    """Return the scratch directory of a process that was killed, with a file in it."""
    with claiming(root) as (directory, _):
        (directory / "librocksdbjni.so").write_bytes(b"x")
    return directory


def test_directory_of_a_killed_process_is_removed_by_the_next(tmp_path: Path) -> None:
    """With all that lies in it."""
    left = left_by_a_killed_process(tmp_path)
    assert left.exists()
    own = claim_scratch(tmp_path)
    assert not left.exists()
    assert own.is_dir()
    assert list(tmp_path.iterdir()) == [own]


def test_directory_of_a_running_process_is_left_alone(tmp_path: Path) -> None:
    """That of this process too."""
    own = claim_scratch(tmp_path)
    with claiming(tmp_path) as (other, _):
        third = claim_scratch(tmp_path)
        assert len({own, other, third}) == 3
        assert all(one.is_dir() for one in (own, other, third))
        assert other.parent == tmp_path


def test_directory_that_a_running_jvm_names_is_left_alone(tmp_path: Path) -> None:
    """A killed program may leave its JVM running for a while."""
    left = left_by_a_killed_process(tmp_path)
    option = f"-Djava.io.tmpdir={left}"
    wait = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", wait, option],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as jvm:
        try:
            assert jvm.stdout is not None
            jvm.stdout.readline()
            claim_scratch(tmp_path)
            assert left.exists()
        finally:
            jvm.kill()
    claim_scratch(tmp_path)
    assert not left.exists()


def test_files_of_others_are_not_touched(tmp_path: Path) -> None:
    """Only directories that were claimed here are removed."""
    (tmp_path / "other").mkdir()
    (tmp_path / "jvm-notes").write_text("")
    claim_scratch(tmp_path)
    assert {"other", "jvm-notes"} < {one.name for one in tmp_path.iterdir()}


def test_root_that_others_may_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They could put links there; the log says that nothing is removed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    root = scratch_root()
    root.mkdir()
    root.chmod(0o777)
    own = claim_scratch()
    assert own.parent == tmp_path
    assert list(root.iterdir()) == []
    assert (
        f"can write to {root}, so temporary files go to another directory"
        in caplog.text
    )


def test_link_in_the_place_of_the_root_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user may have put it there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    target = tmp_path / "target"
    (target / "jvm-x").mkdir(parents=True)
    scratch_root().symlink_to(target)
    assert claim_scratch().parent == tmp_path
    assert list(target.iterdir()) == [target / "jvm-x"]


def test_root_is_in_the_directory_of_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which `TMPDIR` names; other users cannot read it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = claim_scratch()
    assert own.parent == scratch_root()
    assert own.parent.parent == tmp_path
    assert own.parent.stat().st_mode & 0o077 == 0
