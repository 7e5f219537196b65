"""Prints forecasts: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sds_core.observer.channel_table import ChannelTable
from sds_core.planning.errors import ModelMissing
from sds_core.planning.fleet import Fleet, forecast_fleet
from sds_core.planning.forecast import Forecast, ForecastSettings, Interval, Outlook
from sds_core.planning.hours import SILENCE_MS
from sds_core.planning.limits import Reached
from sds_core.text import byte_size, counted, number, printable, utc_time
from streaming.cli.actions.plan_sources import ReadHours, read_hours
from streaming.cli.log import logger
from streaming.cli.output import print_json, wall_ms
from streaming.cli.plan_options import Horizon, PlanSource

_LIMITS = {
    "epoch_messages": "rate-limit budget",
    "message_bytes": "message size",
    "filter_ids": "filter",
}
_LOG_EVERY = 20


def print_forecast(
    source: PlanSource, table: ChannelTable, horizon: Horizon, as_json: bool
) -> None:
    """Print the forecast of each view and of their sum.

    Args:
        source: Where the history is read from.
        table: Names of channels.
        horizon: What is asked.
        as_json: Whether to print JSON.

    Raises:
        click.UsageError: No view has a forecast.
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
            read.rows,
            read.measures,
            settings,
            end_ms=read.end_ms,
            now_ms=now_ms,
            progress=_progress(len(read.rows)),
        )
    except ModelMissing as error:
        raise click.UsageError(str(error)) from error
    if fleet.total is None:
        raise click.UsageError(_refusal(fleet, read))
    if now_ms - fleet.total.begin_ms > SILENCE_MS:
        logger.warning("the history ends at %s", utc_time(fleet.total.begin_ms))
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
    assert fleet.total is not None  # noqa: S101 - the caller checked
    return {
        "begin": fleet.total.begin_ms,
        "days": horizon.days,
        "interval": horizon.interval,
        "channels": {
            name: {"name": _name(name, read, table) or None, **_object(one)}
            for name, one in fleet.views.items()
        },
        "total": _object(fleet.total),
        "without_forecast": [
            {"channel": name, "why": str(why)} for name, why in fleet.without.items()
        ],
    }


def _name(view: str, read: ReadHours, table: ChannelTable) -> str:
    return table.of(view).name or read.names.get(view, "")


def _object(one: Forecast) -> dict[str, Any]:
    return {
        "history_days": one.history_days,
        "figures": {name: _outlook(figure) for name, figure in one.figures.items()},
        "limits": [
            {
                "figure": limit.name,
                "limit": _rounded(limit.limit),
                "now": _rounded(limit.now),
                "reached": limit.at_ms,
                "reached_earliest": limit.earliest_ms,
                "reached_latest": limit.latest_ms,
                "note": limit.note,
            }
            for limit in one.limits
        ],
    }


def _outlook(figure: Outlook) -> dict[str, Any]:
    return {
        "past": _rounded(figure.past),
        "week": _interval(figure.week),
        "days": [_interval(day) for day in figure.days],
    }


def _interval(one: Interval) -> dict[str, float]:
    return {name: _rounded(value) for name, value in one._asdict().items()}


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


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
        low, mid, high = (_amount(name, value) for value in figure.week)
        table.add_row(
            Text(_word(name)), _amount(name, figure.past), mid, f"{low} to {high}"
        )
    console.print(table)
    for limit in one.limits:
        _print_line(console, f"  {_limit_line(limit, horizon)}")
    console.print()


def _print_line(console: Console, text: str, style: str = "") -> None:
    # Not broken, so that programs and people can search for a whole line.
    console.print(Text(text, style), soft_wrap=True)


_WORDS: Mapping[str, str] = {
    "retransmission": "bytes of retransmissions",
    "kafka.bytes": "bytes in Kafka",
    "kafka.bytes_per_second": "Kafka B/s, peak hour",
    "kafka.storage": "Kafka storage, peak",
    "epoch_messages": "epoch messages, peak",
    "epoch_headroom": "epoch headroom, least",
    "message_bytes": "message size, peak hour",
    "filter_ids": "ids in filter, peak",
}


def _word(name: str) -> str:
    if name.startswith("bytes."):
        return f"  {name.removeprefix('bytes.')}"
    return _WORDS.get(name, name)


def _amount(name: str, value: float) -> str:
    if name == "epoch_headroom":
        return f"{100 * value:.0f} %"
    if "bytes" not in name and name not in ("retransmission", "kafka.storage"):
        return f"{value:,.0f}"
    return byte_size(value)


def _limit_line(limit: Reached, horizon: Horizon) -> str:
    what = f"{_LIMITS[limit.name]} ({_amount(limit.name, limit.limit)})"
    if limit.now >= limit.limit:
        return f"{what}: reached"
    if limit.note:
        what = f"{what}, {limit.note}"
    if limit.earliest_ms is None:
        return f"{what}: not within {horizon.days} days"
    middle, latest = (
        f"later than {horizon.days} days" if at_ms is None else utc_time(at_ms)
        for at_ms in (limit.at_ms, limit.latest_ms)
    )
    return f"{what}: {middle} (earliest {utc_time(limit.earliest_ms)}, latest {latest})"
