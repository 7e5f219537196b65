"""A lock file: only one process at a time writes to a directory."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.storage.disk import make_directory


@contextmanager
def locked(path: Path, *, waits: bool = False) -> Iterator[None]:
    """Hold a lock while the block runs; the system releases it if the process ends.

    Args:
        path: The lock file; it and its directory are created if missing, for this user
            alone.
        waits: Whether to wait for another process that holds the lock.

    Raises:
        BlockingIOError: Another process holds the lock.
        OSError: The file cannot be created.
    """
    make_directory(path.parent, 0o700)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        yield
