"""Files that survive a power failure, and errors of failing disks.

If a file is written under another name, synced and renamed, it exists completely or not
at all. The new name is durable after a sync of the directory. If the system refuses a
change, functions raise `OSError`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

_MORE_SPACE = "free space on this disk"
_SOUND_DISK = "check this disk and its connection, of which the kernel's log has more"

REMEDIES: Mapping[int, str] = MappingProxyType(
    {errno.ENOSPC: _MORE_SPACE, errno.EDQUOT: _MORE_SPACE, errno.EIO: _SOUND_DISK}
)

_WRITTEN_AFTER_NS = 120 * 1_000_000_000
"""Age after which data counts as on the disk; the kernel usually needs 30 s."""

_LEAST_FREE_BYTES = 256 * 1024
"""Free space that SQLite needs to create the file that its readers share."""


@contextmanager
def locked(path: Path, *, waits: bool = False) -> Iterator[None]:
    """Hold a lock while the block runs; the system releases it if the process ends.

    If missing, the lock file and its directory are created for this user alone. If
    `waits`, the call waits for another process that holds the lock.

    Raises:
        BlockingIOError: Another process holds the lock.
    """
    make_directory(path.parent, 0o700)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        yield


def with_remedy(cause: str) -> str:
    """Return an error in one line, with the remedy if a disk caused it."""
    for number, remedy in REMEDIES.items():
        if os.strerror(number) in cause:
            return f"{cause}; {remedy}"
    return cause


def primary_code(error: sqlite3.Error) -> int | None:
    """Return the primary result code of SQLite; None if Python raised the error."""
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    # The lowest byte of an extended result code is the primary code.
    return None if extended is None else extended & 0xFF


def error_of_disk(error: sqlite3.Error, path: Path) -> OSError | None:
    """Return the system's error for an error of SQLite; None if no disk caused it."""
    code = primary_code(error)
    if code == sqlite3.SQLITE_FULL:
        number = errno.ENOSPC
    elif code == sqlite3.SQLITE_IOERR or (
        code == sqlite3.SQLITE_CANTOPEN and is_writable(path) and not path.is_dir()
    ):
        # SQLite reports a full disk only when it writes to a file.
        number = _refusal_of(path.parent) or errno.EIO
    else:
        return None
    reason = os.strerror(number)
    if number == errno.EIO:
        reason = f"{reason} ({error})"
    return OSError(number, reason, str(path))


def _refusal_of(directory: Path) -> int | None:
    # If a quota or the file system's reserve limits the space, only a write shows it.
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(_LEAST_FREE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno if error.errno in REMEDIES else None
    return None


def is_writable(path: Path) -> bool:
    """Whether this process may write a file and other files in its directory."""
    places = (path, path.parent) if path.exists() else (path.parent,)
    return all(os.access(place, os.W_OK) for place in places)


def cause_of(error: sqlite3.Error, path: Path) -> str:
    """Return an error of SQLite about a file in one line, with the remedy if known."""
    failed = error_of_disk(error, path)
    return str(error) if failed is None else with_remedy(str(failed.strerror))


def sync(path: Path) -> None:
    """Make a file, or the names in a directory, durable."""
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

    The mode applies only to the directory itself.
    """
    if not path.is_dir():
        if not path.parent.is_file():
            make_directory(path.parent)
        path.mkdir(mode, exist_ok=True)
    # Another process may have created the directory and ended before it synced the
    # parent. If this process cannot open the parent, it did not create the directory.
    with suppress(PermissionError):
        sync(path.parent)


@contextmanager
def replacing(path: Path, unfinished: Path | None = None) -> Iterator[BinaryIO]:
    """Yield a new file that durably replaces `path` when the block ends.

    While the block runs, `path` stays unchanged, and the new file is at `unfinished`,
    which must be on the same disk. If the block raises an error, `path` also stays
    unchanged, and the new file is removed.
    """
    unfinished = unfinished or path.with_name(f"{path.name}.new")
    try:
        with unfinished.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        sync(path.parent)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        # An error of a write does not name the file.
        if isinstance(error, OSError) and error.filename in (None, str(unfinished)):
            error.filename = str(path)
        raise


class NewFiles:
    """Syncs files that a program added to a directory without syncing them.

    The program writes each file under another name and renames the file to one of the
    given names. Files older than two minutes count as durable.
    """

    def __init__(self, directory: Path, names: Collection[str]) -> None:
        self._directory = directory
        self._names = names
        # Recent writes of another process may not be durable.
        since_ns = time.time_ns() - _WRITTEN_AFTER_NS
        self._known = frozenset(
            one for one in self._entries() if os.stat(one[0]).st_mtime_ns < since_ns
        )

    def sync(self) -> None:
        """Sync files that were added since the last call, then their directories."""
        entries = frozenset(self._entries())
        new = [Path(path) for path, _ in entries - self._known]
        # The first sync writes the file system's journal, so the other syncs are short.
        # Threads would cost more CPU time than the syncs themselves.
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
