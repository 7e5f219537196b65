"""Prints forecasts: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from sds_core.observer.channel_table import ChannelTable
from sds_core.planning import words
from sds_core.planning.document import forecast_object
from sds_core.planning.errors import ModelMissing
from sds_core.planning.fleet import forecast_fleet
from sds_core.planning.forecast import Forecast, ForecastSettings
from sds_core.planning.hours import SILENCE_MS
from sds_core.planning.plan import Plan
from sds_core.text import counted, number, printable, utc_time
from streaming.cli.actions.plan_sources import ReadHours, read_hours
from streaming.cli.exit_codes import wrong_use
from streaming.cli.log import logger
from streaming.cli.output import print_json, wall_ms, write_page
from streaming.cli.plan_options import PlanSource
from streaming.cli.tables import print_line, print_table

_LOG_EVERY = 20


def print_forecast(
    source: PlanSource,
    table: ChannelTable,
    settings: ForecastSettings,
    as_json: bool,
    html: Path | None,
) -> None:
    """Print the forecast of each view and of the views' sum; write a page to `html`.

    Raises:
        click.UsageError: No view has a forecast, or the page cannot be written.
    """
    now_ms = wall_ms()
    read = read_hours(source, now_ms)
    with wrong_use(ModelMissing):
        fleet = forecast_fleet(
            dict(sorted(read.rows.items())),
            read.measures,
            settings,
            end_ms=read.end_ms,
            now_ms=now_ms,
            progress=partial(_log, number(len(read.rows))),
        )
    plan = Plan.of(fleet, now_ms, settings.days, settings.coverage)
    if not plan.views:
        raise click.UsageError(_refusal(plan, read))
    if now_ms - read.end_ms > SILENCE_MS:
        logger.warning("the history has no rows after %s", utc_time(read.end_ms))

    def name_of(view: str) -> str:
        return table.of(view).name or read.given_names.get(view, "")

    if html is not None:
        # The import is local, because jinja and pygal are needed only for a page.
        from streaming.cli.actions.plan_report import forecast_report

        write_page(forecast_report(plan, read.names, name_of), html)
    if as_json:
        print_json(_document(plan, read.end_ms, name_of))
    else:
        _print_tables(plan, read, name_of)


def _log(views: str, done: int) -> None:
    if done % _LOG_EVERY == 0:
        logger.info("%s of %s forecast", number(done), views)


def _refusal(plan: Plan, read: ReadHours) -> str:
    if not plan.without:
        return f"no forecast: the history has no {read.names.one}"
    name, why = next(iter(plan.without.items()))
    if len(plan.without) == 1:
        return f"no forecast for {printable(name)}: {why}"
    views = f"any of {number(len(plan.without))} {read.names.many}"
    return f"no forecast for {views}; {printable(name)}: {why}"


def _document(plan: Plan, end_ms: int, name_of: Callable[[str], str]) -> dict[str, Any]:
    return {
        "begin": end_ms,
        "days": plan.days,
        "interval": plan.interval,
        "channels": {
            view: {"name": name_of(view) or None, **forecast_object(one)}
            for view, one in plan.views.items()
        },
        "total": None if plan.total is None else forecast_object(plan.total),
        "without_forecast": [
            {"channel": view, "why": why} for view, why in plan.without.items()
        ],
    }


def _print_tables(plan: Plan, read: ReadHours, name_of: Callable[[str], str]) -> None:
    console = Console()
    for view, one in plan.views.items():
        title = f"{read.names.one.capitalize()} {printable(view)}"
        if name := name_of(view):
            title += f" ({printable(name)})"
        _print_view(console, title, one, plan)
    if len(plan.views) > 1 and plan.total is not None:
        title = f"Sum of {counted(len(plan.views), read.names.one)}"
        _print_view(console, title, plan.total, plan)
    for view, why in plan.without.items():
        print_line(console, f"no forecast for {printable(view)}: {why}")


def _print_view(console: Console, title: str, one: Forecast, plan: Plan) -> None:
    heading = (
        f"{title}: {counted(one.history_days, 'day')} of history, until "
        f"{utc_time(one.begin_ms)}"
    )
    print_line(console, heading, "bold")
    share = f"{plan.interval} % interval"
    headings = ("a day, mean", "last 7 days", "next 7 days", share)
    print_table(console, headings, words.figure_rows(one.figures))
    for limit in one.limits:
        print_line(console, f"  {words.limit_line(limit, plan.days)}")
    console.print()
