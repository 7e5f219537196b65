"""Reads the hours of views from the API of a running monitor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import click
import httpx
import msgspec

from sds_core.planning.fleet import HourlyRows
from sds_core.planning.hours import HOUR_MS
from sds_core.text import printable, shown
from streaming.cli import Unreachable
from streaming.cli.plan_options import DEFAULT_API, PlanSource

_TIMEOUT_S = 60.0

_Minute = dict[str, int | None]


class _Hours(msgspec.Struct):
    hours: list[_Minute]
    clock: int | None = None


class _View(msgspec.Struct):
    id: str
    name: str | None = None


class _Refusal(msgspec.Struct):
    error: str


class MonitorHours(NamedTuple):
    """What a monitor answers.

    Attributes:
        rows: By view.
        end_ms: End of its last whole hour of event time, Unix ms.
        names: Names of channels that have one.
    """

    rows: HourlyRows
    end_ms: int
    names: dict[str, str]


_Answer = TypeVar("_Answer")


def read_monitor(url: str, prefix: str, source: PlanSource, many: str) -> MonitorHours:
    """Read the hours of all views, or of the one that the source names.

    Args:
        url: Address of the monitor.
        prefix: Prefix of the kind of view.
        source: Which views.
        many: Word for views of this kind.

    Raises:
        click.ClickException: The monitor is unreachable, or refuses.
    """
    names: dict[str, str] = {}
    if source.channel is None:
        views = list(_views(url, prefix, many))
        names = {one.id: one.name for one in views if one.name}
        wanted = [one.id for one in views]
    else:
        wanted = [source.channel]
    rows: dict[str, list[_Minute]] = {}
    clock_ms = 0
    for name in wanted:
        given = {"id": name, "days": source.days}
        found = _get(url, f"views/{quote(prefix, '')}/hours", given, _Hours)
        if any(row.get("minute") is None for row in found.hours):
            message = f"{url} gives an hour without a minute: is it sds-monitor's?"
            raise Unreachable(message)
        rows[name] = found.hours
        clock_ms = max(clock_ms, found.clock or 0)
    return MonitorHours(rows, clock_ms // HOUR_MS * HOUR_MS, names)


def _views(url: str, prefix: str, many: str) -> Iterator[_View]:
    """Yield all views of a kind, page by page."""
    after: str | None = None
    while True:
        given = {} if after is None else {"after": after}
        page = _get(url, f"views/{quote(prefix, '')}", given, dict[str, msgspec.Raw])
        try:
            yield from msgspec.json.decode(page.get(many, b""), type=list[_View])
            after = msgspec.json.decode(page.get("next", b"null"), type=str | None)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreachable(_no_answer(url, error)) from error
        if after is None:
            return


def _get(url: str, path: str, given: dict[str, Any], type_: type[_Answer]) -> _Answer:
    try:
        answer = httpx.get(
            f"{url.rstrip('/')}/api/v1/{path}", params=given, timeout=_TIMEOUT_S
        )
        if answer.status_code == httpx.codes.OK:
            return msgspec.json.decode(answer.content, type=type_)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        message = f"--api: {url!r} is no URL such as {DEFAULT_API}: {error}"
        raise click.UsageError(message) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(_no_answer(url, error)) from error
    except httpx.RequestError as error:
        message = f"no monitor answers at {url} ({error}): is it running?"
        raise Unreachable(message) from error
    try:
        why = msgspec.json.decode(answer.content, type=_Refusal).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = f"{url} answers {answer.status_code}: is it sds-monitor's?"
        raise Unreachable(message) from None
    if answer.status_code == httpx.codes.NOT_FOUND and "id" in given:
        message = f"no such channel: {shown(given['id'])}"
        raise click.UsageError(message)
    message = f"{url} answers {answer.status_code}: {printable(why)}"
    raise Unreachable(message)


def _no_answer(url: str, error: Exception) -> str:
    return f"{url} gives no hours ({error}): is it sds-monitor's, 0.16 or newer?"
