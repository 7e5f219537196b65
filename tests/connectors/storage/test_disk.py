"""Files that survive a power failure."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from connectors.storage import disk
from connectors.storage.disk import NewFiles, make_directory, replacing, with_remedy

OLD_NS = 1_000_000_000


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is synced, in order."""
    names: list[str] = []

    def fsync(descriptor: int) -> None:
        names.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        os.fdatasync(descriptor)

    monkeypatch.setattr(disk.os, "fsync", fsync)
    return names


def test_file_is_synced_before_it_takes_its_place(
    tmp_path: Path, synced: list[str]
) -> None:
    """And its name after."""
    path = tmp_path / "made" / "report.json"
    make_directory(path.parent)
    assert synced == [tmp_path.parent.name, tmp_path.name]
    with replacing(path) as file:
        file.write(b"old")
    assert synced[2:] == ["report.json.new", "made"]
    with pytest.raises(KeyError), replacing(path) as file:
        raise KeyError(file.write(b"new"))
    assert [(one.name, one.read_bytes()) for one in path.parent.iterdir()] == [
        ("report.json", b"old")
    ]


def test_error_without_a_name_gets_that_of_the_file(tmp_path: Path) -> None:
    """Also if the file beside it is the one that failed; others keep theirs."""
    path = tmp_path / "report.json"
    for given, named in ((None, path), (f"{path}.new", path), ("other", "other")):
        with pytest.raises(OSError, match="full") as caught, replacing(path):
            raise OSError(errno.ENOSPC, "full", given)
        assert caught.value.filename == str(named)


def test_directory_that_was_made_but_not_synced_is_synced(
    tmp_path: Path, synced: list[str]
) -> None:
    """The process that made it may have ended in between."""
    (tmp_path / "a").mkdir()
    make_directory(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path.name, "a", "b"]


def test_what_is_new_is_synced_once(tmp_path: Path, synced: list[str]) -> None:
    """Files, then their directories; a replaced file too, and what is just written."""
    log, state = tmp_path / "commits", tmp_path / "state" / "0"
    for directory in (log, state, tmp_path / "monitor"):
        directory.mkdir(parents=True)
    for path in (log / "0", state / "1.changelog", tmp_path / "monitor" / "ledger"):
        path.write_bytes(b"x")
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.utime(path, ns=(OLD_NS, OLD_NS))
    (log / "1").write_bytes(b"of a process that was killed")
    os.utime(log, ns=(OLD_NS, OLD_NS))
    new = NewFiles(tmp_path, ("commits", "metadata", "state"))
    new.sync()
    assert synced == ["1", "commits"]
    new.sync()
    (state / "2.changelog").write_bytes(b"x")
    (log / "1.new").write_bytes(b"x")
    (log / "1.new").replace(log / "1")
    (tmp_path / "metadata").write_bytes(b"x")
    (tmp_path / "monitor" / "more").write_bytes(b"x")
    new.sync()
    assert sorted(synced[2:5]) == ["1", "2.changelog", "metadata"]
    assert sorted(synced[5:]) == sorted(["commits", "0", tmp_path.name])


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_error_of_a_disk_has_a_remedy(number: int) -> None:
    """Other errors stay as they are."""
    line = with_remedy(f"/a: {os.strerror(number)}")
    assert line == f"/a: {os.strerror(number)}; {disk.REMEDIES[number]}"
    assert with_remedy("/a: Permission denied") == "/a: Permission denied"
