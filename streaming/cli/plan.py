"""``sds-monitor plan`` and its commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streaming.cli.channels import channel_table, channels_option
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
from streaming.cli.settings import config_option

if TYPE_CHECKING:
    from sds_core.planning.forecast import ForecastSettings


@click.group(
    "plan",
    epilog="Example: sds-monitor plan forecast --history ./state/history",
)
def command() -> None:
    """Look ahead: what channels will cost, and what other settings would change."""


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
    """Forecast bytes, messages, filters and epochs from the history.

    For each channel and for their sum: the last seven days, the next seven, and when
    each limit is reached. Needs 14 whole days of history, and the extra `plan`
    (statsmodels). Exit code 2 if no channel has a forecast, with the reason.
    """
    from streaming.cli.actions.plan_forecast import print_forecast

    print_forecast(source, channel_table(channels), settings, form == "json", html)
