"""Files that survive a power failure."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connectors.kafka.settings import KafkaRefused, KafkaUnreachable
from connectors.storage import disk
from connectors.storage.disk import (
    NewFiles,
    is_special,
    make_directory,
    replacing,
    with_remedy,
)

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
    unfinished, directory = synced[2:]
    assert unfinished.startswith(".sds-monitor-")
    assert directory == "made"
    with pytest.raises(KeyError), replacing(path) as file:
        raise KeyError(file.write(b"new"))
    assert [(one.name, one.read_bytes()) for one in path.parent.iterdir()] == [
        ("report.json", b"old")
    ]


def test_error_of_a_write_names_the_file(tmp_path: Path) -> None:
    """Whether the buffer is written while the block runs or when it ends."""
    path = tmp_path / "report.json"
    for size in (10, 1_000_000):
        with (
            pytest.raises(OSError, match="too large") as caught,
            no_file_can_grow(),
            replacing(path) as file,
        ):
            file.write(bytes(size))
        assert caught.value.filename == str(path)
    (tmp_path / "file").touch()
    for parent in ("missing", "file"):
        path = tmp_path / parent / "report.json"
        with pytest.raises(OSError, match="directory") as caught, replacing(path):
            pass
        assert caught.value.filename == str(path)


@contextmanager
def no_file_can_grow() -> Iterator[None]:
    """Let writes to files fail in this process while the block runs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_other_errors_in_the_block_stay_as_they_are(tmp_path: Path) -> None:
    """What the block reads from may fail too, for example Kafka."""
    errors: list[OSError] = [
        KafkaUnreachable("127.0.0.1:1"),
        KafkaRefused("127.0.0.1:1", "the broker requires a login", "log in"),
        OSError(errno.ENOSPC, "full"),
        OSError(errno.ENOSPC, "full", "other"),
    ]
    for error in errors:
        before = str(error)
        with pytest.raises(OSError) as caught, replacing(tmp_path / "report.json"):  # noqa: PT011
            raise error
        assert caught.value is error
        assert str(error) == before


def test_writers_at_the_same_time_do_not_share_a_file(tmp_path: Path) -> None:
    """The last to finish wins, and files beside it stay as they are."""
    path, beside = tmp_path / "latest.jsonl", tmp_path / "latest.jsonl.new"
    beside.write_bytes(b"of somebody else")
    with replacing(path) as first:
        first.write(b"first")
        with replacing(path) as second:
            second.write(b"the second")
        assert path.read_bytes() == b"the second"
    assert path.read_bytes() == b"first"
    assert beside.read_bytes() == b"of somebody else"
    assert sorted(tmp_path.iterdir()) == [path, beside]


def test_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    """Those that the umask leaves."""
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "report.json") as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o640


def test_pipe_is_written_to(tmp_path: Path) -> None:
    """As anything that is no regular file: nothing takes its place."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with replacing(pipe) as file:
            file.write(b"records")
        assert os.read(reader, 100) == b"records"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_path_that_cannot_be_looked_up_is_not_special(tmp_path: Path) -> None:
    """For example, in a directory of another user; its write then names the error."""
    assert not is_special(tmp_path / ("a" * 256))


def test_descriptor_of_a_pipe_is_written_to() -> None:
    """As `/dev/stdout` in a pipeline; its name leads to no path."""
    reader, writer = os.pipe()
    try:
        with replacing(Path(f"/proc/self/fd/{writer}")) as file:
            file.write(b"records")
        assert os.read(reader, 100) == b"records"
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "link"])
def test_standard_output_that_is_a_file_is_continued(tmp_path: Path, name: str) -> None:
    """As after `>> FILE`: what it holds and what is printed later stay."""
    (tmp_path / "link").symlink_to("/proc/self/fd/1")
    log = tmp_path / "log"
    log.write_bytes(b"earlier, ")
    program = (
        "from pathlib import Path; "
        "from connectors.storage.disk import is_special, replacing; "
        f"path = Path({name!r}); "
        "print(is_special(path), end=', ', flush=True)\n"
        "with replacing(path) as file: file.write(b'records, ')\n"
        "print('later', end='')"
    )
    with log.open("ab") as stdout:
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.getcwd()},
            stdout=stdout,
        )
    assert log.read_bytes() == b"earlier, True, records, later"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "log"]


def test_links_in_a_circle_are_not_special(tmp_path: Path) -> None:
    """The write names the error."""
    link = tmp_path / "link"
    link.symlink_to("link")
    assert not is_special(link)


@pytest.mark.parametrize("exists", [True, False])
def test_link_stays_a_link(tmp_path: Path, exists: bool) -> None:
    """The file that it leads to is replaced, or made."""
    target, link = tmp_path / "there" / "report.json", tmp_path / "report.json"
    target.parent.mkdir()
    if exists:
        target.write_bytes(b"old")
    link.symlink_to("there/report.json")
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_directory_that_was_made_but_not_synced_is_synced(
    tmp_path: Path, synced: list[str]
) -> None:
    """The process that made it may have ended in between."""
    (tmp_path / "a").mkdir()
    make_directory(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path.name, "a", "b"]


def test_what_is_new_is_synced_once(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files, then their directories; a replaced file too, and what is just written."""
    log, state = tmp_path / "commits", tmp_path / "state" / "0"
    for directory in (log, state, tmp_path / "monitor"):
        directory.mkdir(parents=True)
    ledger = tmp_path / "monitor" / "ledger"
    for path in (log / "0", log / "1", state / "1.changelog", ledger):
        path.write_bytes(b"x")
    old_ns = max(path.stat().st_ctime_ns for path in tmp_path.rglob("*"))
    while (log / "1").stat().st_ctime_ns <= old_ns:
        (log / "1").write_bytes(b"of a process that was killed")
    two_minutes_later_ns = old_ns + 120 * 1_000_000_000 + 1
    monkeypatch.setattr(disk.time, "time_ns", lambda: two_minutes_later_ns)
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


def test_copy_that_kept_old_times_is_new(tmp_path: Path, synced: list[str]) -> None:
    """As a restored backup, which `cp -a` has written a moment ago."""
    state = tmp_path / "state"
    state.write_bytes(b"x")
    os.utime(state, ns=(OLD_NS, OLD_NS))
    NewFiles(tmp_path, ("state",)).sync()
    assert synced == ["state", tmp_path.name]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_error_of_a_disk_has_a_remedy(number: int) -> None:
    """Other errors stay as they are."""
    line = with_remedy(f"/a: {os.strerror(number)}")
    assert line == f"/a: {os.strerror(number)}; {disk.REMEDIES[number]}"
    assert with_remedy("/a: Permission denied") == "/a: Permission denied"
