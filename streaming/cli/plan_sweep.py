"""``sds-monitor plan sweep``."""

from __future__ import annotations

from pathlib import Path

import click

from streaming.cli import commands
from streaming.cli.plan_options import html_option, tables_or_json_option
from streaming.cli.reading_options import master_option
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.values import DIRECTORY, EXISTING_FILE
from streaming.settings import SessionSettings

DEFAULT_FIGURES = (
    "first_pass",
    "eventual",
    "recovery_p50_s",
    "recovery_p95_s",
    "bytes_per_day",
)


@commands.command("sweep", "sds-monitor plan sweep grid.toml --out ./sweep --summary")
@click.argument(
    "grid",
    required=False,
    type=EXISTING_FILE,
    envvar="SDS_MONITOR_GRID",
)
@setting(
    "--out",
    type=DIRECTORY,
    required=True,
    panel=Panel.OUTPUT,
    help="Directory of the results. If the directory contains results of the same "
    "grid, the sweep continues.",
)
@setting(
    "--summary", is_flag=True, panel=Panel.OUTPUT, help="Print a table of the results."
)
@setting(
    "--figure",
    "figures",
    metavar="NAME",
    multiple=True,
    default=DEFAULT_FIGURES,
    panel=Panel.OUTPUT,
    help="Column of results.parquet that the table shows. Repeatable.",
)
@master_option
@tables_or_json_option
@html_option
@log_option()
def sweep_command(
    grid: Path | None,
    out: Path,
    summary: bool,
    figures: tuple[str, ...],
    master: str | None,
    as_json: bool,
    html: Path | None,
) -> None:
    """Simulate all combinations of settings in GRID, a TOML file, with Spark.

    When all runs are finished, the command writes results.parquet to --out. To continue
    a sweep that was stopped or killed, run the same command again.

    If GRID is omitted, --summary or --html shows the results in --out.
    """
    from streaming.cli.actions.plan_summary import check_summary, print_summary
    from streaming.cli.actions.plan_sweep import run_sweep

    if grid is None and not summary and html is None:
        message = "give GRID (a TOML file), --summary or --html"
        raise click.UsageError(message)
    if summary or html is not None:
        check_summary(figures, html)
    if grid is not None:
        run_sweep(grid, out, SessionSettings(master, shuffle_partitions=1))
    if summary or html is not None:
        print_summary(out, figures, as_json, html)
