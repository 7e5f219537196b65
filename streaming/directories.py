"""Locks the checkpoint and the history of a job, so that each has only one writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from connectors.storage.disk import REMEDIES, locked, make_directory


class DirectoryUnwritable(OSError):
    """The directory of a checkpoint or history cannot be created or written to."""

    def __init__(self, what: str, directory: Path, reason: str) -> None:
        super().__init__(
            f"{what} {directory} cannot be written to ({reason}): set --{what} to "
            "a writable directory"
        )


class DirectoryInUse(RuntimeError):
    """Another job has locked the checkpoint or the history."""

    def __init__(self, what: str, directory: Path) -> None:
        verb = "writes to" if what == "history" else "runs on"
        super().__init__(
            f"another job {verb} {what} {directory}: end that job, or use "
            f"another --{what}"
        )


@contextmanager
def told_unwritable(what: str, directory: Path) -> Iterator[None]:
    """Turn the system's errors about a directory into `DirectoryUnwritable`.

    Errors of a full or failing disk stay as they are, because the job does not need
    another directory.
    """
    try:
        yield
    except OSError as error:
        if error.errno in REMEDIES:
            raise
        reason = error.strerror or str(error)
        raise DirectoryUnwritable(what, directory, reason) from error


@contextmanager
def locked_directory(what: str, directory: Path, lock: str) -> Iterator[None]:
    """Lock a directory while the block runs; `lock` is the name of the lock file.

    A missing directory is created, with access for this user only.

    Raises:
        DirectoryInUse: Another process has the lock.
        DirectoryUnwritable: The directory cannot be created or written to.
        OSError: The disk is full, or fails.
    """
    with ExitStack() as stack:
        with told_unwritable(what, directory):
            # Libraries choose the modes of the files in the directory, so only the mode
            # of the directory itself can keep out other users.
            make_directory(directory, 0o700)
            try:
                stack.enter_context(locked(directory / lock))
            except BlockingIOError:
                raise DirectoryInUse(what, directory) from None
        yield
