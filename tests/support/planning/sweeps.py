"""A small sweep, and its results without Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from connectors.sweep_results import Finished, opened_sweep
from sds_core.planning.experiment import run as simulated
from sds_core.planning.grid import Grid
from tests.support.waiting import wait_for

TEXT = """\
seeds = 2
receptions = 2000

[base]
participants = 6
messages_per_day = 5000

[grid]
loss = [0.0, 0.3]
causal_history = [2, 20]
"""

GRID = tomllib.loads(TEXT)


def killed_after_a_run(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], out: str
) -> bytes:
    """Kill a sweep once it has finished a run; returns the journal that is left.

    Args:
        command: The sweep.
        directory: Its working directory.
        environment: Its variables.
        out: Its directory of results, below the working directory.
    """
    journal = directory / out / "runs.jsonl"
    with subprocess.Popen(
        command, cwd=directory, env=environment, start_new_session=True
    ) as process:
        try:
            wait_for(lambda: journal.exists() and journal.read_text().count("\n"), 60)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    return journal.read_bytes()


def simulated_here(
    directory: Path, runs: int | None = None, grid: Mapping[str, Any] = GRID
) -> None:
    """Simulate runs in this process, the first ones or all with their table."""
    with opened_sweep(directory, grid, version("sds-monitor")) as writer:
        for run in list(Grid.from_mapping(grid).runs())[:runs]:
            outcome = simulated(
                run.plan, run.seed, receptions=run.receptions, target_s=run.target_s
            )
            writer.add(Finished.of(run.number, 1.0, outcome))
        if runs is None:
            writer.finish()
