"""Reads the hourly figures of views from a history or from a running monitor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import click
import httpx
import msgspec

from connectors.history.query import channels
from connectors.history.schema import KindTables, tables_of
from sds_core.observer.figure_table import Names
from sds_core.observer.kinds import AnyKind
from sds_core.planning.fleet import HourlyRows
from sds_core.planning.hours import HOUR_MS
from sds_core.planning.measures import Measures, measures_of
from sds_core.text import did_you_mean, shown
from streaming.cli.actions.incident_sources import history_errors, kind_of
from streaming.cli.actions.monitor_api import Foreign, Refused, ask_monitor
from streaming.cli.exit_codes import Unreachable
from streaming.cli.incident_options import DEFAULT_API
from streaming.cli.plan_options import PlanSource
from streaming.plan_worker import read_history

_TIMEOUT_S = 60.0
_Minute = dict[str, int | None]
_Page = dict[str, msgspec.Raw]


class _View(msgspec.Struct):
    id: str
    name: str | None = None


class ReadHours(NamedTuple):
    """The hourly rows of each view, by the view's id.

    `end_ms` is the end of the last whole hour, Unix ms: the same for all views. It is
    computed from the newest time in the source when reading starts. `given_names` maps
    ids to the names that the monitor gives to views. `measures` are the columns of the
    rows. `names` has the words of this kind of views, such as "channel" and "channels".
    """

    rows: HourlyRows
    end_ms: int
    given_names: Mapping[str, str]
    measures: Measures
    names: Names


def read_hours(source: PlanSource, now_ms: int) -> ReadHours:
    """Read the hourly rows of the view `source.channel`; if it is None, of all views.

    Raises:
        click.ClickException: The source cannot be read, or does not know the view.
    """
    tables = tables_of(kind_of(source.views))
    kind = tables.kind
    given_names: dict[str, str] = {}
    if source.history is None:
        url = source.api or DEFAULT_API
        rows, end_ms, given_names = _of_monitor(url, kind, source)
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


def _of_monitor(
    url: str, kind: AnyKind, source: PlanSource
) -> tuple[HourlyRows, int, dict[str, str]]:
    """Read the hourly rows of the view `source.channel`; if it is None, of all views.

    Returns three results: rows by the view's id; the end of the last whole hour of
    event time, Unix ms; and the names of views by id.

    Raises:
        click.ClickException: The monitor is unreachable, or refuses the request.
    """
    path = f"views/{quote(kind.prefix, '')}"
    views = [_View(source.channel or "")]
    if source.channel is None:
        views = [
            view
            for page in _pages(url, path, {})
            for view in _part(url, page, kind.names.many, list[_View])
        ]
    rows: dict[str, list[_Minute]] = {}
    clock_ms = 0
    for view in views:
        found: list[_Minute] = []
        given = {"id": view.id, "days": source.days}
        for page in _pages(url, f"{path}/hours", given):
            found += _part(url, page, "hours", list[_Minute])
            # The first time counts, so that all views have the whole of the last hour.
            clock_ms = clock_ms or _part(url, page, "clock", int | None) or 0
        if any(row.get("minute") is None for row in found):
            message = (
                f"a row in the answer of {url} has no time: check that sds-monitor "
                "runs there"
            )
            raise Unreachable(message)
        rows[view.id] = found
    names = {view.id: view.name for view in views if view.name}
    return rows, clock_ms // HOUR_MS * HOUR_MS, names


def _pages(url: str, path: str, given: dict[str, Any]) -> Iterator[_Page]:
    after: str | None = None
    while True:
        page = _ask(url, path, {**given, "after": after})
        yield page
        # A monitor of version 0.18 or earlier answers with all hours in one page,
        # without `next`.
        after = _part(url, page, "next", str | None)
        if after is None:
            return


def _part(url: str, page: _Page, key: str, kind: Any) -> Any:
    """Return the value of `key` in a page; if `kind` allows None, it may be missing."""
    try:
        return msgspec.json.decode(page.get(key, b"null"), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Foreign(url, "hours", error) from error


def _ask(url: str, path: str, given: dict[str, Any]) -> _Page:
    try:
        return ask_monitor(url, path, given, ("hours", _Page), _TIMEOUT_S)
    except Refused as error:
        if error.status != httpx.codes.NOT_FOUND or "id" not in given:
            raise
        message = f"no such channel: {shown(given['id'])}"
        raise click.UsageError(message) from error
