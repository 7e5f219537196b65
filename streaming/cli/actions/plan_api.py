"""Reads the hours of views from the API of a running monitor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import click
import httpx
import msgspec

from sds_core.observer.kinds import AnyKind
from sds_core.planning.fleet import HourlyRows
from sds_core.planning.hours import HOUR_MS
from sds_core.text import shown
from streaming.cli.actions.monitor_api import Foreign, Refused, ask_monitor
from streaming.cli.exit_codes import Unreachable
from streaming.cli.plan_options import PlanSource

_TIMEOUT_S = 60.0
_Minute = dict[str, int | None]
_Page = dict[str, msgspec.Raw]


class _View(msgspec.Struct):
    id: str
    name: str | None = None


def read_monitor(
    url: str, kind: AnyKind, source: PlanSource
) -> tuple[HourlyRows, int, dict[str, str]]:
    """Read the hours of all views, or only of the view in `source`.

    Returns three results: rows by view; the end of the last whole hour of event time,
    Unix ms; and the names of views.

    Raises:
        click.ClickException: The monitor is unreachable, or refuses.
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
            clock_ms = max(clock_ms, _part(url, page, "clock", int | None) or 0)
        if any(row.get("minute") is None for row in found):
            message = (
                f"{url} lists an hour without a time: check that sds-monitor runs there"
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
        # Monitors up to 0.18 answer with all hours at once.
        after = _part(url, page, "next", str | None)
        if after is None:
            return


def _part(url: str, page: _Page, key: str, kind: Any) -> Any:
    """Return a part of a page, which may be missing if `kind` allows None."""
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
