"""``sds-monitor plan`` and its commands."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from streaming.cli import commands
from streaming.cli.channels import table_option
from streaming.cli.commands import Group
from streaming.cli.plan_options import (
    forecast_options,
    html_option,
    source_options,
    tables_or_json_option,
)
from streaming.cli.plan_what_if import what_if_command
from streaming.cli.reading_options import master_option
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.values import DIRECTORY, EXISTING_FILE, Duration, Number
from streaming.settings import SessionSettings

_ABOVE_ZERO = partial(Number, 0, min_open=True)
_LONGER_THAN_ZERO = partial(Duration, min=0, min_open=True)


@click.group(
    "plan",
    cls=Group,
    epilog="Example: sds-monitor plan forecast --history ./state/history",
)
def command() -> None:
    """Forecast what channels cost, and compare settings."""


command.add_command(what_if_command)


@commands.command(
    "forecast",
    "sds-monitor plan forecast --history ./state/history "
    "--channel my-channel --kafka-retention-days 7",
    command,
)
@source_options
@table_option
@forecast_options
@tables_or_json_option
@html_option
def forecast_command(**options: Any) -> None:
    """Forecast bytes, messages, filters and rate-limit use from the history.

    For each channel and for the sum of all channels, the command prints the figures of
    the last seven days, and a forecast for the next seven days. For each channel, the
    command also prints when the channel reaches each limit. The forecast needs a
    history of 14 whole days, and the Python extra `plan` (statsmodels).

    If no channel has a forecast, the exit code is 2.
    """
    from streaming.cli.actions.plan_forecast import print_forecast

    print_forecast(**options)


@commands.command(
    "size",
    "sds-monitor plan size --channel-count 1000 --participants 20 "
    "--messages-per-second 100",
    command,
)
@setting(
    "--channel-count",
    "channels",
    type=click.IntRange(1, 1_000_000),
    required=True,
    panel=Panel.TRAFFIC,
    help="Number of channels, each with the same traffic.",
)
@setting(
    "--messages-per-second",
    "frames_per_s",
    type=_ABOVE_ZERO(max=100_000),
    required=True,
    panel=Panel.TRAFFIC,
    help="Frames per second of all channels together, including sync messages.",
)
@setting(
    "--participants",
    type=click.IntRange(1, 10_000),
    default=5,
    panel=Panel.TRAFFIC,
    help="Number of participants in each channel.",
)
@setting(
    "--memory-hours",
    "hours",
    type=_LONGER_THAN_ZERO("h", max=24 * 31),
    default=1.0,
    panel=Panel.TIME,
    help="Retention window: how long the monitor remembers messages.",
)
@setting(
    "--frame-bytes",
    type=_ABOVE_ZERO(max=32 * 2**20),
    panel=Panel.TRAFFIC,
    show_default="mean size of the measured frames that have a filter",
    help="Mean size of a frame, in bytes.",
)
@setting(
    "--trigger",
    "trigger_s",
    type=_LONGER_THAN_ZERO("s", max=3_600),
    default=1.0,
    panel=Panel.TIME,
    help="Time between two batches: the --trigger of `run`.",
)
@setting(
    "--history-days",
    type=Duration("d", 1, 36_500, is_whole=True),
    default=30,
    panel=Panel.STORAGE,
    help="Retention of the history: the --history-days of `run`.",
)
@setting(
    "--performance",
    type=EXISTING_FILE,
    metavar="FILE",
    panel=Panel.SOURCE,
    show_default="as shipped",
    help="File with the results of `make bench` on your machine.",
)
@setting(
    "--scaling",
    type=EXISTING_FILE,
    metavar="FILE",
    panel=Panel.SOURCE,
    show_default="as shipped",
    help="File with the results of the benchmarks on a cluster.",
)
@tables_or_json_option
@html_option
def size_command(**options: Any) -> None:
    """Estimate what the monitor needs: cores, memory, state and disk.

    The command prints the largest load that one machine can process, and how many
    executors a cluster needs. The figures come from a cost model that is fitted to the
    project's benchmarks. The command also prints the maximum error of each figure.
    """
    from streaming.cli.actions.plan_size import print_size

    print_size(**options)


@commands.command(
    "sweep", "sds-monitor plan sweep grid.toml --out ./sweep --summary", command
)
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
    help="Directory for the results. If the directory contains results of the same "
    "grid, the command continues that sweep.",
)
@setting(
    "--summary", is_flag=True, panel=Panel.OUTPUT, help="Print a table of the results."
)
@setting(
    "--figure",
    "figures",
    metavar="NAME",
    multiple=True,
    default=(
        "first_pass",
        "eventual",
        "recovery_p50_s",
        "recovery_p95_s",
        "bytes_per_day",
    ),
    panel=Panel.OUTPUT,
    help="Column of results.parquet to show in the table. Repeatable.",
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
    """Use Spark to simulate all combinations of the settings in the TOML file GRID.

    When all runs are finished, the command writes results.parquet to --out. To continue
    a sweep that was stopped or killed, run the same command again.

    To show the results that --out already contains, omit GRID, and give --summary or
    --html.
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
