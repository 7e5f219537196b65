"""Reads the hours of views from a history or from a running monitor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click

from connectors.history.query import channels
from connectors.history.schema import KindTables, tables_of
from sds_core.observer.figure_table import Names
from sds_core.planning.fleet import HourlyRows
from sds_core.planning.measures import Measures, measures_of
from sds_core.text import did_you_mean, shown
from streaming.cli.actions.incident_sources import history_errors, kind_of
from streaming.cli.actions.plan_api import read_monitor
from streaming.cli.incident_options import DEFAULT_API
from streaming.cli.plan_options import PlanSource
from streaming.plan_worker import read_history


class ReadHours(NamedTuple):
    """The hours of views: rows by view, and names of views that the source gives.

    `end_ms` is the end of the last whole hour of any view, Unix ms. `measures` are the
    columns of the rows; `names` are the words for views.
    """

    rows: HourlyRows
    end_ms: int
    given_names: Mapping[str, str]
    measures: Measures
    names: Names


def read_hours(source: PlanSource, now_ms: int) -> ReadHours:
    """Read the hours of all views, or only of the view in `source`.

    Raises:
        click.ClickException: The source cannot be read, or does not know the view.
    """
    tables = tables_of(kind_of(source.views))
    kind = tables.kind
    given_names: dict[str, str] = {}
    if source.history is None:
        url = source.api or DEFAULT_API
        rows, end_ms, given_names = read_monitor(url, kind, source)
    else:
        rows, end_ms = _of_history(source.history, source, tables, now_ms)
    return ReadHours(rows, end_ms, given_names, measures_of(kind.published), kind.names)


def _of_history(
    directory: Path, source: PlanSource, tables: KindTables, now_ms: int
) -> tuple[HourlyRows, int]:
    only = None if source.channel is None else [source.channel]
    with history_errors(directory):
        rows, end_ms = read_history(directory, tables, only, source.days, now_ms)
        if rows or source.channel is None:
            return rows, end_ms
        known = channels(directory, tables)
    if source.channel not in known:
        guess = did_you_mean(source.channel, known)
        message = f"no such channel: {shown(source.channel)}{guess}"
        raise click.UsageError(message)
    return {source.channel: []}, end_ms
