"""Damages files as a full disk, a crash of the machine or an operator does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path], object]
"""Damages a checkpoint."""


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


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def version(checkpoint: Path) -> int:
    """The version of the state after the newest batch."""
    return int(newest(checkpoint / "commits").name) + 1


def newest_values(checkpoint: Path) -> Path:
    """The newest changelog of a partition that has values: none of them is outdated."""
    logs = sorted(
        (checkpoint / "state/0/1").glob("*.changelog"), key=lambda path: int(path.stem)
    )
    smallest = min(path.stat().st_size for path in logs)
    return [path for path in logs if path.stat().st_size > 2 * smallest][-1]


def removed(*names: str) -> Damage:
    """Remove files or directories."""

    def damage(checkpoint: Path) -> None:
        for name in names:
            path = checkpoint / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def of_newest(directory: str, damage: Callable[[Path], object] = truncate) -> Damage:
    """Damage the newest file of a directory."""
    return lambda checkpoint: damage(newest(checkpoint / directory))
