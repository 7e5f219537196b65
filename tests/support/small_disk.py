"""A real file system that is soon full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")


@contextmanager
def small_disk(place: Path, size: str, *options: str) -> Iterator[Path]:
    """Mount a file system in memory while the block runs; gives its directory.

    Args:
        place: The directory; made.
        size: Its size, as ``2m``.
        options: Further options of the mount.
    """
    place.mkdir()
    what = ",".join((f"size={size}", *options))
    subprocess.run(["mount", "-t", "tmpfs", "-o", what, "none", place], check=True)
    try:
        yield place
    finally:
        # Lazily: a process that a test has killed may end a moment later.
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(directory: Path, left: int = 0) -> None:
    """Leave so many bytes, or none, to other files."""
    with (directory / "filler").open("wb", buffering=0) as file:
        free = os.statvfs(directory)
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - left)))
