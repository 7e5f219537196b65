"""Scratch directories for temporary files of JVMs.

A JVM unpacks native libraries (Spark's need 15 MB) and deletes them when it ends. A
killed JVM leaves its unpacked libraries behind. Each start of the program therefore
removes the scratch directories of processes that have ended.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

_LOCK = "lock"
_CLAIMED = "jvm-"
_UNCLAIMED = ".jvm-"

_log = logging.getLogger("sds-monitor")


def scratch_root() -> Path:
    """Return the parent of this user's scratch directories, without creating it."""
    return Path(tempfile.gettempdir()).resolve() / f"sds-monitor-{os.getuid()}"


def claim_scratch(root: Path | None = None) -> Path:
    """Create a scratch directory for this process and a JVM that it starts.

    The parent of the directory is `root`, by default `scratch_root`. When this process
    has ended, and no running process names the directory in its command line, a later
    call removes the directory.

    If other users can write to `root`, the new directory is not in `root`, and no call
    removes it.

    Raises:
        OSError: The directory cannot be created.
    """
    root = root or scratch_root()
    with suppress(FileExistsError):
        root.mkdir(mode=0o700)
    if not _is_own(root):
        _log.warning(
            "other users can write to %s, so temporary files go to another directory: "
            "if a JVM is killed, its files remain there",
            root,
        )
        return Path(tempfile.mkdtemp(prefix=f"{root.name}-"))
    for directory in _not_named(_unlocked(root)):
        shutil.rmtree(directory, ignore_errors=True)
    # Lock the directory before it gets its final name, because other processes remove
    # unlocked directories that have a final name.
    made = Path(tempfile.mkdtemp(prefix=_UNCLAIMED, dir=root))
    # The descriptor stays open, so the lock lasts until this process ends.
    _lock(made)
    return made.rename(made.with_name(made.name.removeprefix(".")))


def _is_own(root: Path) -> bool:
    found = root.lstat()
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _lock(directory: Path) -> int:
    """Lock a directory; return the descriptor of its lock file.

    The lock ends when the descriptor is closed, or when this process ends.
    """
    descriptor = os.open(directory / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _unlocked(root: Path) -> Iterator[Path]:
    for directory in root.glob(f"{_CLAIMED}*"):
        with suppress(OSError):
            os.close(_lock(directory))
            yield directory


def _not_named(directories: Iterable[Path]) -> list[Path]:
    """Return the directories that no running process names in its command line.

    If the parent process of a JVM is killed, the JVM may still run and use its
    directory.
    """
    left = list(directories)
    if not left:
        return []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = " ".join(process.cmdline())
            left = [directory for directory in left if str(directory) not in words]
    return left
