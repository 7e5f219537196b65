"""Prints forecasts: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sds_core.observer.channel_table import ChannelTable
from sds_core.planning import words
from sds_core.planning.document import forecast_object
from sds_core.planning.errors import ModelMissing
from sds_core.planning.fleet import Fleet, forecast_fleet
from sds_core.planning.forecast import Forecast, ForecastSettings
from sds_core.planning.hours import SILENCE_MS
from sds_core.planning.plan import Plan
from sds_core.text import counted, number, printable, utc_time
from streaming.cli.actions.plan_sources import ReadHours, read_hours
from streaming.cli.log import logger
from streaming.cli.output import print_json, wall_ms, write_page
from streaming.cli.plan_options import Horizon, PlanSource

_LOG_EVERY = 20


def print_forecast(
    source: PlanSource,
    table: ChannelTable,
    horizon: Horizon,
    as_json: bool,
    html: Path | None,
) -> None:
    """Print the forecast of each view and of their sum.

    Args:
        source: Where the history is read from.
        table: Names of channels.
        horizon: What is asked.
        as_json: Whether to print JSON.
        html: File for a page with charts; None without one.

    Raises:
        click.UsageError: No view has a forecast, or the page cannot be written.
        click.ClickException: The source cannot be read.
    """
    now_ms = wall_ms()
    read = read_hours(source, now_ms)
    settings = ForecastSettings(
        days=horizon.days,
        coverage=horizon.interval / 100,
        epoch_messages=horizon.epoch_messages,
        record_bytes=horizon.record_bytes,
        retention_days=horizon.retention_days,
        replication=horizon.replication,
    )
    try:
        fleet = forecast_fleet(
            dict(sorted(read.rows.items())),
            read.measures,
            settings,
            end_ms=read.end_ms,
            now_ms=now_ms,
            progress=_progress(len(read.rows)),
        )
    except ModelMissing as error:
        raise click.UsageError(str(error)) from error
    if not fleet.views:
        raise click.UsageError(_refusal(fleet, read))
    if now_ms - read.end_ms > SILENCE_MS:
        logger.warning("the history ends at %s", utc_time(read.end_ms))
    if html is not None:
        # jinja and pygal, which tables do not need.
        from streaming.cli.actions.plan_report import forecast_report

        plan = Plan.of(fleet, now_ms, horizon.days, settings.coverage)
        report = forecast_report(plan, read, lambda view: _name(view, read, table))
        write_page(report, html)
    if as_json:
        print_json(_document(fleet, read, table, horizon))
    else:
        _print_tables(fleet, read, table, horizon)


def _progress(views: int) -> Callable[[int], None]:
    def log(done: int) -> None:
        if done % _LOG_EVERY == 0:
            logger.info("%s of %s forecast", number(done), number(views))

    return log


def _refusal(fleet: Fleet, read: ReadHours) -> str:
    """Return in one line why there is no forecast."""
    if not fleet.without:
        return f"no forecast: the history has no {read.one}"
    name, why = next(iter(fleet.without.items()))
    if len(fleet.without) == 1:
        return f"no forecast for {printable(name)}: {why}"
    views = f"any of {number(len(fleet.without))} {read.many}"
    return f"no forecast for {views}; {printable(name)}: {why}"


def _document(
    fleet: Fleet, read: ReadHours, table: ChannelTable, horizon: Horizon
) -> dict[str, Any]:
    total = fleet.total
    return {
        "begin": read.end_ms,
        "days": horizon.days,
        "interval": horizon.interval,
        "channels": {
            name: {
                "name": _name(name, read, table) or None,
                **forecast_object(one),
            }
            for name, one in fleet.views.items()
        },
        "total": None if total is None else forecast_object(total),
        "without_forecast": [
            {"channel": name, "why": str(why)} for name, why in fleet.without.items()
        ],
    }


def _name(view: str, read: ReadHours, table: ChannelTable) -> str:
    return table.of(view).name or read.names.get(view, "")


def _print_tables(
    fleet: Fleet, read: ReadHours, table: ChannelTable, horizon: Horizon
) -> None:
    console = Console()
    for name, one in fleet.views.items():
        title = f"{read.one.capitalize()} {printable(name)}"
        if given := _name(name, read, table):
            title += f" ({printable(given)})"
        _print_view(console, title, one, horizon)
    if len(fleet.views) > 1 and fleet.total is not None:
        title = f"Sum of {counted(len(fleet.views), read.one)}"
        _print_view(console, title, fleet.total, horizon)
    for name, why in fleet.without.items():
        _print_line(console, f"no forecast for {printable(name)}: {why}")


def _print_view(console: Console, title: str, one: Forecast, horizon: Horizon) -> None:
    heading = (
        f"{title}: {counted(one.history_days, 'day')} of history, until "
        f"{utc_time(one.begin_ms)}"
    )
    _print_line(console, heading, "bold")
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("a day, mean")
    for heading in ("last 7 days", "next 7 days", f"{horizon.interval} % interval"):
        table.add_column(heading, justify="right")
    for name, figure in one.figures.items():
        table.add_row(
            Text(words.figure_name(name)),
            words.amount(name, figure.past),
            words.amount(name, figure.week.mid),
            words.interval(name, figure.week),
        )
    console.print(table)
    for limit in one.limits:
        _print_line(console, f"  {words.limit_line(limit, horizon.days)}")
    console.print()


def _print_line(console: Console, text: str, style: str = "") -> None:
    # Not broken, so that programs and people can search for a whole line.
    console.print(Text(text, style), soft_wrap=True)
