"""Reads the hours of views from a history or from a running monitor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click

from connectors.history.query import channels, hourly_rows, newest_minute_ms
from connectors.history.schema import KindTables, tables_of
from sds_core.planning.fleet import HourlyRows
from sds_core.planning.hours import CLOCK_MS, DAY_MS, last_hour_ms
from sds_core.planning.measures import Measures, measures_of
from sds_core.text import did_you_mean, shown
from streaming.cli.actions.incident_sources import history_errors, kind_of
from streaming.cli.actions.plan_api import read_monitor
from streaming.cli.plan_options import DEFAULT_API, PlanSource

_END_OF_TIME_MS = 1 << 52
"""A row of the future is read too, because it says that a clock jumped."""


class ReadHours(NamedTuple):
    """The hours of views.

    Attributes:
        rows: By view.
        end_ms: End of the last whole hour of any view, Unix ms.
        names: Names of channels that the source gives.
        measures: Columns of the rows.
        one: Word for a view.
        many: Word for views.
    """

    rows: HourlyRows
    end_ms: int
    names: Mapping[str, str]
    measures: Measures
    one: str
    many: str


def read_hours(source: PlanSource, now_ms: int) -> ReadHours:
    """Read the hours of all views, or of the one that the source names.

    Args:
        source: Where to read.
        now_ms: Wall time, Unix ms.

    Raises:
        click.ClickException: The source cannot be read, or does not know the view.
    """
    tables = tables_of(kind_of(source.views))
    names = tables.kind.names
    measures = measures_of(tables.kind.published)
    if source.history is None:
        found = read_monitor(
            source.api or DEFAULT_API, tables.kind.prefix, source, names.many
        )
        return ReadHours(
            found.rows, found.end_ms, found.names, measures, names.one, names.many
        )
    rows, newest_ms = _of_history(source.history, source, tables, measures, now_ms)
    end_ms = last_hour_ms(newest_ms)
    return ReadHours(rows, end_ms, {}, measures, names.one, names.many)


def _of_history(
    directory: Path,
    source: PlanSource,
    tables: KindTables,
    measures: Measures,
    now_ms: int,
) -> tuple[HourlyRows, int]:
    """Return the rows, and the newest minute of any view, Unix ms."""
    with history_errors(directory):
        rows = hourly_rows(
            directory,
            source.channel,
            now_ms - source.days * DAY_MS,
            _END_OF_TIME_MS,
            measures.counters,
            measures.gauges,
            tables,
        )
        newest_ms = newest_minute_ms(directory, now_ms + CLOCK_MS, tables) or 0
        if rows or source.channel is None:
            return rows, newest_ms
        known = channels(directory, tables)
    if source.channel not in known:
        guess = did_you_mean(source.channel, known)
        message = f"no such channel: {shown(source.channel)}{guess}"
        raise click.UsageError(message)
    return {source.channel: []}, newest_ms
