"""Which batches a checkpoint has planned and committed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Batches(NamedTuple):
    """Numbers of the newest batches of a checkpoint; -1 if there is none."""

    planned: int
    committed: int

    @property
    def is_under_way(self) -> bool:
        """Whether a batch is planned and not committed."""
        return self.planned > self.committed


def batches_of(checkpoint: Path) -> Batches:
    """Read the numbers of the newest batches."""
    # In this order: a batch that ends meanwhile must not seem to be under way.
    planned = _newest(checkpoint / "offsets")
    return Batches(planned, _newest(checkpoint / "commits"))


def wait_for_batch(
    checkpoint: Path,
    least: int,
    is_alive: Callable[[], bool],
    seconds: float = 300,
) -> int:
    """Wait until a batch with at least this number is under way; return its number.

    Args:
        checkpoint: Directory of the checkpoint.
        least: Number of the first batch that counts.
        is_alive: Whether the job runs; the wait fails if it does not.
        seconds: Longest wait.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert is_alive(), "the job ended before it could be killed"
        found = batches_of(checkpoint)
        if found.is_under_way and found.planned >= least:
            return found.planned
        time.sleep(0.005)
    message = f"no batch was found under way within {seconds:g} s"
    raise AssertionError(message)


def _newest(directory: Path) -> int:
    if not directory.is_dir():
        return -1
    return max(
        (int(file.name) for file in directory.iterdir() if file.name.isdigit()),
        default=-1,
    )
