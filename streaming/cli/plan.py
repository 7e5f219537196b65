"""``sds-monitor plan`` and its commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streaming.cli.channels import channel_table, channels_option
from streaming.cli.commands import Group
from streaming.cli.config_file import config_option
from streaming.cli.plan_options import (
    PlanSource,
    forecast_options,
    format_option,
    html_option,
    source_options,
)
from streaming.cli.plan_size import size_command
from streaming.cli.plan_sweep import sweep_command
from streaming.cli.plan_what_if import what_if_command

if TYPE_CHECKING:
    from sds_core.planning.forecast import ForecastSettings


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


@command.command(
    "forecast",
    epilog="Example: sds-monitor plan forecast --history ./state/history "
    "--channel my-channel --kafka-retention-days 7",
)
@config_option
@source_options
@channels_option
@forecast_options
@format_option
@html_option
def forecast_command(
    source: PlanSource,
    channels: Path | None,
    settings: ForecastSettings,
    form: str,
    html: Path | None,
) -> None:
    """Forecast bytes, messages, filters and rate-limit use from the history.

    For each channel and for the sum of all channels, the command prints the figures of
    the last seven days, and a forecast for the next seven days. For each channel, the
    command also prints when each limit is reached. The forecast needs a history of 14
    whole days, and the extra `plan` (statsmodels).

    If no channel has a forecast, the exit code is 2.
    """
    from streaming.cli.actions.plan_forecast import print_forecast

    print_forecast(source, channel_table(channels), settings, form == "json", html)
