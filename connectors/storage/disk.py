"""Writes files that survive a power failure, and explains errors of failing disks.

A file is written under a temporary name, synced, and renamed. Under its final name, the
file thus is complete or does not exist. The final name is durable after a sync of the
directory. If the system refuses a change, functions raise `OSError`.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import re
import secrets
import sqlite3
import stat
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

_MORE_SPACE = "free space on this disk"
_SOUND_DISK = "check this disk and its connection, of which the kernel's log has more"

REMEDIES: Mapping[int, str] = MappingProxyType(
    {errno.ENOSPC: _MORE_SPACE, errno.EDQUOT: _MORE_SPACE, errno.EIO: _SOUND_DISK}
)

_WRITTEN_AFTER_NS = 120 * 1_000_000_000
"""Time after which written data counts as being on the disk. The kernel usually writes
data to the disk within 30 s."""

_UNFINISHED = re.compile(r"\.sds-monitor-[0-9a-f]{16}")
"""Name of a file that is not finished."""

_ABANDONED_AFTER_NS = 3_600 * 1_000_000_000
"""Time after which an unlocked file that did not change counts as abandoned."""

_MAX_LINKS = 40
"""Maximum number of links that are followed, as in the kernel."""

_LEAST_FREE_BYTES = 256 * 1024
"""Free space that SQLite needs to create the file that readers of a database share."""


@contextmanager
def locked(path: Path, *, waits: bool = False) -> Iterator[None]:
    """Hold a lock while the block runs. If the process ends, the lock is released.

    A missing lock file is created. If its directory is missing, it is created too, and
    only this user can access it. If another process holds the lock and `waits` is True,
    the call waits for the lock.

    Raises:
        BlockingIOError: Another process holds the lock, and `waits` is False.
    """
    make_directory(path.parent, 0o700)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        yield


def with_remedy(cause: str) -> str:
    """Return an error's one-line text, with a remedy if a disk caused the error."""
    for number, remedy in REMEDIES.items():
        if os.strerror(number) in cause:
            return f"{cause}; {remedy}"
    return cause


def primary_code(error: sqlite3.Error) -> int | None:
    """Return the primary result code of an error; None if SQLite did not raise it."""
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    # The lowest byte of an extended result code is the primary code.
    return None if extended is None else extended & 0xFF


def error_of_disk(error: sqlite3.Error, path: Path) -> OSError | None:
    """Return the system's error that caused an error of SQLite.

    Returns None if no disk caused the error.
    """
    code = primary_code(error)
    if code == sqlite3.SQLITE_FULL:
        number = errno.ENOSPC
    elif code == sqlite3.SQLITE_IOERR or (
        code == sqlite3.SQLITE_CANTOPEN and is_writable(path) and not path.is_dir()
    ):
        # If the disk is full when SQLite creates a file, SQLite does not report this
        # cause. A test write finds it.
        number = _refusal_of(path.parent) or errno.EIO
    else:
        return None
    reason = os.strerror(number)
    if number == errno.EIO:
        reason = f"{reason} ({error})"
    return OSError(number, reason, str(path))


def _refusal_of(directory: Path) -> int | None:
    # The number of free bytes is no proof, because a quota or the file system's reserve
    # may limit the space. Only a write shows whether space is available.
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(_LEAST_FREE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno if error.errno in REMEDIES else None
    return None


def is_writable(path: Path) -> bool:
    """Whether this process may write to a file, and may create files beside it."""
    places = (path, path.parent) if path.exists() else (path.parent,)
    return all(os.access(place, os.W_OK) for place in places)


def cause_of(error: sqlite3.Error, path: Path) -> str:
    """Return the cause of an SQLite error in one line, with the remedy if known."""
    failed = error_of_disk(error, path)
    if failed is not None:
        return with_remedy(str(failed.strerror))
    if primary_code(error) == sqlite3.SQLITE_BUSY:
        return f"{error}; end the program that has the file open"
    return str(error)


def sync(path: Path) -> None:
    """Make a file's content, or the names of the files in a directory, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a directory.
        if error.errno != errno.EINVAL:
            error.filename = str(path)
            raise
    finally:
        os.close(descriptor)


def make_directory(path: Path, mode: int = 0o777) -> None:
    """Create a directory durably, with its parents, unless it exists.

    The mode applies only to the directory itself, not to its parents.
    """
    if not path.is_dir():
        if not path.parent.is_file():
            make_directory(path.parent)
        path.mkdir(mode, exist_ok=True)
    # Sync the parent even if the directory existed: another process may have created
    # the directory and ended before it synced the parent. If this process cannot open
    # the parent, it did not create the directory, and the sync is omitted.
    with suppress(PermissionError):
        sync(path.parent)


def is_special(path: Path) -> bool:
    """Whether a path exists, but is no regular file: for example a device or a pipe.

    A path that leads to a descriptor of this process, such as `/dev/stdout`, is special
    too, even if the descriptor's file is regular. A special path is written to
    directly, because a new file cannot take its place. If the system refuses to look up
    the path, the result is False.
    """
    if _descriptor_of(path) is not None:
        return True
    # `Path.exists` would raise an error, for example if this user cannot search the
    # directory. The write raises this error too, and its callers expect it there.
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _descriptor_of(path: Path) -> int | None:
    with suppress(OSError):
        for _ in range(_MAX_LINKS):
            directory = os.path.realpath(path.parent)
            if directory == f"/proc/{os.getpid()}/fd" and path.name.isdecimal():
                return int(path.name)
            path = Path(directory, os.readlink(path))
    return None


@contextmanager
def replacing(path: Path, unfinished: Path | None = None) -> Iterator[BinaryIO]:
    """Yield a new file that durably replaces `path` when the block ends.

    While the block runs, the new file has a unique name in the same directory, and
    `path` stays unchanged. If the block raises an error, the new file is removed, and
    `path` stays unchanged. If `path` is a symbolic link, it stays a link, and the file
    to which it leads is replaced. If `path` is special, the block writes to it
    directly; see `is_special`. If the process is killed, the new file is left behind;
    see `remove_abandoned`.

    If only one process at a time writes to the directory, `unfinished` can be the path
    of the new file. The next call then overwrites what a killed process left. Both
    paths must be on the same file system.

    If the file cannot be written, the error has the name `path`.
    """
    target = path
    if unfinished is None:
        if is_special(path):
            # A file that is opened again would lose its content.
            descriptor = _descriptor_of(path)
            with _errors_of(path):
                opened = path if descriptor is None else os.dup(descriptor)
            with io.BufferedWriter(_NamedFile(opened, path)) as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        unfinished = target.with_name(f".sds-monitor-{secrets.token_hex(8)}")
    try:
        with io.BufferedWriter(_NamedFile(unfinished, path)) as file:
            # Some file systems have no locks.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            with _errors_of(path):
                os.fsync(file.fileno())
        with _errors_of(path):
            unfinished.replace(target)
        sync(target.parent)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def remove_abandoned(path: Path) -> None:
    """Remove new files that killed processes left in the directory of a file.

    Files that `replacing` creates for `path` are in this directory. A file is removed
    only if no process holds its lock, and if it has not changed for an hour, because
    some file systems have no locks. If a file cannot be removed, it stays.
    """
    if is_special(path):
        return
    with suppress(OSError):
        directory = Path(os.path.realpath(path)).parent
        for name in filter(_UNFINISHED.fullmatch, os.listdir(directory)):
            with suppress(OSError):
                _remove_if_abandoned(directory / name)


def _remove_if_abandoned(path: Path) -> None:
    # Other users may have put something else at the path: a pipe would block the call.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and (
            time.time_ns() - found.st_mtime_ns > _ABANDONED_AFTER_NS
        ):
            path.unlink()
    finally:
        os.close(descriptor)


class _NamedFile(io.FileIO):
    """A file that is written; if this fails, the error has another path's name."""

    def __init__(self, file: Path | int, name: Path) -> None:
        self._path = name
        with _errors_of(name):
            super().__init__(file, "w")

    def write(self, data: Any, /) -> int:
        with _errors_of(self._path):
            return super().write(data)


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


class NewFiles:
    """Syncs files that a program adds to a directory without syncing them.

    `names` are the files and subdirectories of `directory` to which this applies. The
    program must write each file under a temporary name and then rename it, because a
    file that is changed in place is not synced again. Files that are older than two
    minutes when this object is created count as durable.
    """

    def __init__(self, directory: Path, names: Collection[str]) -> None:
        self._directory = directory
        self._names = names
        # Files that another process wrote recently may not be durable, so they are not
        # yet known. A restored backup has old times of modification, but no program can
        # set `st_ctime_ns`.
        since_ns = time.time_ns() - _WRITTEN_AFTER_NS
        self._known = frozenset(
            one for one in self._entries() if os.stat(one[0]).st_ctime_ns < since_ns
        )

    def sync(self) -> None:
        """Sync files that were added since the last call, then their directories."""
        entries = frozenset(self._entries())
        new = [Path(path) for path, _ in entries - self._known]
        # The files are synced one after the other. The first sync writes the file
        # system's journal, so the other syncs are short. Threads for parallel syncs
        # would cost more CPU time than the syncs themselves.
        for path in new:
            # The program may have removed the file since the listing.
            with suppress(FileNotFoundError):
                sync(path)
        for directory in {path.parent for path in new}:
            sync(directory)
        self._known = entries

    def _entries(self) -> Iterator[tuple[str, int]]:
        for entry in os.scandir(self._directory):
            if entry.name in self._names:
                yield from _below(entry)


def _below(entry: os.DirEntry[str]) -> Iterator[tuple[str, int]]:
    yield entry.path, entry.inode()
    if entry.is_dir(follow_symlinks=False):
        for inner in os.scandir(entry.path):
            yield from _below(inner)
