"""What one process alone may write to."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock while the block runs; it ends with the process however that ends.

    Args:
        path: A file for it, which is made with its directory.

    Raises:
        BlockingIOError: Somebody else holds it.
        OSError: The file cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
