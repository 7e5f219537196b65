"""Several plays, each in a process of its own, some of them at once."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from math import ceil
from multiprocessing import get_context
from pathlib import Path

import click

from tests.support.chaos.play import Outcome, Play

MOST_KILLS = 200
"""Of one play, which then ends within an hour even on a busy machine.

After an hour, the monitor forgets an id that no frame names. The truth does not.
"""


def shares_of(kills: int, jobs: int) -> list[int]:
    """Return the number of kills of each play: about as many for each."""
    plays = max(jobs, ceil(kills / MOST_KILLS))
    return [kills // plays + (play < kills % plays) for play in range(plays)]


def play_together(directory: Path, seed: int, kills: int, jobs: int) -> Outcome:
    """Play; return the sum of what all plays came to.

    Args:
        directory: For all files.
        seed: Of the first play; that of each further one is 1 higher.
        kills: Of all plays together.
        jobs: Number of plays at once.
    """
    shares = shares_of(kills, jobs)
    seeds = range(seed, seed + len(shares))
    begun_s = time.monotonic()
    # In one process, the nodes of the plays would share one core.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        outcome = sum(pool.map(_play, repeat(directory), seeds, shares), Outcome())
    outcome.seconds = time.monotonic() - begun_s
    return outcome


def _play(directory: Path, seed: int, kills: int) -> Outcome:
    def say(line: str) -> None:
        click.echo(f"seed {seed}: {line}")

    files = directory / str(seed)
    files.mkdir()
    outcome = Play(files, seed, say).run(kills)
    say(f"ended with {len(outcome.differences)} differences")
    return outcome
