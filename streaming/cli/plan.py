"""``sds-monitor plan`` and its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streaming.cli import commands
from streaming.cli.channels import channel_table, channels_option
from streaming.cli.commands import Group
from streaming.cli.plan_options import (
    forecast_options,
    html_option,
    source_options,
    tables_or_json_option,
)
from streaming.cli.plan_size import size_command
from streaming.cli.plan_sweep import sweep_command
from streaming.cli.plan_what_if import what_if_command


@click.group(
    "plan",
    cls=Group,
    epilog="Example: sds-monitor plan forecast --history ./state/history",
)
def command() -> None:
    """Forecast costs of channels, and compare settings."""


command.add_command(size_command)
command.add_command(what_if_command)
command.add_command(sweep_command)


@commands.command(
    "forecast",
    "sds-monitor plan forecast --history ./state/history "
    "--channel my-channel --kafka-retention-days 7",
    command,
)
@source_options
@channels_option
@forecast_options
@tables_or_json_option
@html_option
def forecast_command(channels: Path | None, **options: Any) -> None:
    """Forecast bytes, messages, filters and rate-limit use from the history.

    For each channel and for the sum of all channels, the command prints the figures of
    the last seven days, and a forecast for the next seven days. For each channel, the
    command also prints when each limit is reached. The forecast needs a history of 14
    whole days, and the extra `plan` (statsmodels).

    If no channel has a forecast, the exit code is 2.
    """
    from streaming.cli.actions.plan_forecast import print_forecast

    print_forecast(table=channel_table(channels), **options)
