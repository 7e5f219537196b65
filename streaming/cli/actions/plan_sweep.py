"""Runs a sweep, and shows its progress."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from connectors.sweep_results import (
    TABLE,
    SweepDiskFailed,
    SweepRefused,
    opened_sweep,
)
from connectors.toml_file import UnreadableToml, read_toml
from sds_core.planning.grid import Grid
from sds_core.reading import TableError
from sds_core.text import counted, number
from streaming.cli.exit_codes import Failed, failed_work, wrong_use
from streaming.cli.log import logger
from streaming.cli.starting import refusals_explained, running_spark
from streaming.cli.tables import shown_progress
from streaming.settings import SessionSettings
from streaming.sweep import sweep


@refusals_explained()
@wrong_use(SweepRefused)
@failed_work(SweepDiskFailed)
def run_sweep(file: Path, directory: Path, session: SessionSettings) -> None:
    """Simulate the runs of a grid, and write a table of all runs.

    The TOML file defines the grid. Runs whose results are in the directory are not
    repeated.

    Raises:
        click.UsageError: The file or the directory cannot be used; nothing is written.
        click.ClickException: A signal came before the last run ended, or a run or
            the disk failed.
    """
    with wrong_use(UnreadableToml, TableError, where=f"{file}: "):
        mapping = read_toml(file)
        grid = Grid.from_mapping(mapping)
    with opened_sweep(directory, mapping, version("sds-monitor")) as writer:
        runs = {run.number: run for run in grid.runs()}
        done = writer.results.runs
        missing = [run for run in runs.values() if run.number not in done]
        missing.sort(key=lambda run: run.size, reverse=True)
        if missing:
            with (
                running_spark(session) as (spark, ending),
                shown_progress("run", len(runs), len(done)) as count,
            ):
                for one in sweep(spark, missing, ending):
                    writer.add(one)
                    count()
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
