"""Reads the hours of views from the API of a running monitor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar
from urllib.parse import quote

import click
import httpx
import msgspec

from sds_core.observer.kinds import AnyKind
from sds_core.planning.fleet import HourlyRows
from sds_core.planning.hours import HOUR_MS
from sds_core.text import shown
from streaming.cli import Unreachable
from streaming.cli.actions.monitor_api import Foreign, Refused, ask_monitor
from streaming.cli.plan_options import PlanSource

_TIMEOUT_S = 60.0
_Minute = dict[str, int | None]


class _Hours(msgspec.Struct):
    hours: list[_Minute]
    clock: int | None = None


class _View(msgspec.Struct):
    id: str
    name: str | None = None


_Answer = TypeVar("_Answer")


def read_monitor(
    url: str, kind: AnyKind, source: PlanSource
) -> tuple[HourlyRows, int, dict[str, str]]:
    """Read the hours of all views, or of the one that the source names.

    Returns:
        Rows by view; the end of the last whole hour of event time, Unix ms; and names
        of channels that have one.

    Raises:
        click.ClickException: The monitor is unreachable, or refuses.
    """
    path = f"views/{quote(kind.prefix, '')}"
    views = [_View(source.channel or "")]
    if source.channel is None:
        views = list(_views(url, path, kind.names.many))
    rows: dict[str, list[_Minute]] = {}
    clock_ms = 0
    for view in views:
        given = {"id": view.id, "days": source.days}
        answer = _ask(url, f"{path}/hours", given, _Hours)
        if any(row.get("minute") is None for row in answer.hours):
            message = f"{url} gives an hour without a minute: is it sds-monitor's?"
            raise Unreachable(message)
        rows[view.id] = answer.hours
        clock_ms = max(clock_ms, answer.clock or 0)
    names = {view.id: view.name for view in views if view.name}
    return rows, clock_ms // HOUR_MS * HOUR_MS, names


def _views(url: str, path: str, many: str) -> Iterator[_View]:
    """Yield all views of a kind, page by page."""
    after: str | None = None
    while True:
        page = _ask(url, path, {"after": after}, dict[str, msgspec.Raw])
        try:
            yield from msgspec.json.decode(page.get(many, b""), type=list[_View])
            after = msgspec.json.decode(page.get("next", b"null"), type=str | None)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Foreign(url, "hours", error) from error
        if after is None:
            return


def _ask(url: str, path: str, given: dict[str, Any], kind: type[_Answer]) -> _Answer:
    try:
        return ask_monitor(url, path, given, ("hours", kind), _TIMEOUT_S)
    except Refused as error:
        if error.status != httpx.codes.NOT_FOUND or "id" not in given:
            raise
        message = f"no such channel: {shown(given['id'])}"
        raise click.UsageError(message) from error
