"""Runs a sweep, and shows its progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from connectors.sweep_results import TABLE, Finished, SweepRefused, opened_sweep
from connectors.toml_file import UnreadableToml, read_toml
from sds_core.planning.grid import Grid
from sds_core.reading import TableError
from sds_core.text import counted, number
from streaming.cli.exit_codes import Failed, wrong_use
from streaming.cli.log import logger
from streaming.cli.starting import as_click_error, running_spark
from streaming.failure import JobFailed
from streaming.settings import SessionSettings
from streaming.sweep import sweep

_LOG_EVERY_S = 10.0


@wrong_use(SweepRefused)
def run_sweep(file: Path, directory: Path, session: SessionSettings) -> None:
    """Simulate the missing runs of a TOML file's grid, and write a table of all runs.

    Raises:
        click.UsageError: The file or the directory cannot be used; nothing is written.
        click.ClickException: A signal came before the end, or a run failed.
    """
    with wrong_use(UnreadableToml, TableError, where=f"{file}: "):
        mapping = read_toml(file)
        grid = Grid.from_mapping(mapping)
    try:
        _run(grid, mapping, directory, session)
    except JobFailed as error:
        raise as_click_error(error) from error


def _run(
    grid: Grid, mapping: dict[str, Any], directory: Path, session: SessionSettings
) -> None:
    with opened_sweep(directory, mapping, version("sds-monitor")) as writer:
        runs = {run.number: run for run in grid.runs()}
        done = writer.results.runs
        missing = [run for run in runs.values() if run.number not in done]
        missing.sort(key=lambda run: run.size, reverse=True)
        if missing:
            with running_spark(session) as (spark, ending):
                finished = sweep(spark, missing, ending)
                for one in _shown(finished, len(done), len(runs)):
                    writer.add(one)
        if len(done) < len(runs):
            message = (
                f"the sweep ended after {number(len(done))} of "
                f"{counted(len(runs), 'run')}: to continue, repeat the command"
            )
            raise Failed(message)
        writer.finish()
        minutes = sum(run.cpu_s for run in done.values()) / 60
    logger.info(
        "%s, %.3g a minute of CPU time: %s",
        counted(len(runs), "run"),
        len(runs) / minutes,
        directory / TABLE,
    )


def _shown(finished: Iterable[Finished], done: int, runs: int) -> Iterator[Finished]:
    if sys.stderr.isatty():
        columns = ("runs", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("", total=runs, completed=done)
            for one in finished:
                yield one
                progress.advance(task)
        return
    logged_s = time.monotonic()
    for so_far, one in enumerate(finished, done + 1):
        yield one
        if time.monotonic() - logged_s >= _LOG_EVERY_S:
            logged_s = time.monotonic()
            logger.info("%s of %s", number(so_far), counted(runs, "run"))
