"""Several plays at once, each in a process of its own."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import click

from tests.support.chaos.play import Outcome, Play


def play_together(directory: Path, seed: int, kills: int, jobs: int) -> Outcome:
    """Play as many as there are jobs; return the sum of what they came to.

    Args:
        directory: For all files.
        seed: Of the first play; that of each further one is 1 higher.
        kills: Of all plays together.
        jobs: Number of plays.
    """
    shares = [kills // jobs + (job < kills % jobs) for job in range(jobs)]
    seeds = range(seed, seed + jobs)
    # In one process, their nodes would share one core.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        return sum(pool.map(_play, repeat(directory), seeds, shares), Outcome())


def _play(directory: Path, seed: int, kills: int) -> Outcome:
    def say(line: str) -> None:
        click.echo(f"seed {seed}: {line}")

    files = directory / str(seed)
    files.mkdir()
    return Play(files, seed, say).run(kills)
