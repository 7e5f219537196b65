"""Damages files as a full disk, a crash of the machine or an operator does."""

from __future__ import annotations

from pathlib import Path


def newest(directory: Path, before: int = 0) -> Path:
    """The file with the greatest number in a directory, or one before it."""
    numbers = sorted(int(path.name) for path in directory.glob("[0-9]*"))
    return directory / str(numbers[-1 - before])


def truncate(path: Path, size: int | None = None) -> None:
    """Cut a file to a size in bytes, by default to half of it.

    A negative size is the number of bytes to cut off.
    """
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 if size is None else size])


def without_checksums(directory: Path) -> None:
    """Remove the files with checksums, as a copy without hidden files does."""
    for path in directory.rglob(".*.crc"):
        path.unlink()
