"""Reads incidents from a report, a monitor or a history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import click
import httpx
import msgspec

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.untrusted_json import UNREADABLE
from sds_core.observer.incidents import IncidentKind, IncidentQuery
from sds_core.observer.kinds import AnyKind, UnknownKind
from sds_core.observer.protocols import PROTOCOLS, ROOT_KIND, kinds_of
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.text import did_you_mean, shown
from streaming.cli.actions.monitor_api import Refused, ask_monitor
from streaming.cli.exit_codes import Unreachable, wrong_use
from streaming.cli.incident_options import IncidentFilter, IncidentSource
from streaming.cli.log import logger
from streaming.cli.output import wall_ms

_TIMEOUT_S = 30.0
_EARLIEST_MS = int(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * 1000
_LATEST_MS = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1000

_Time = Annotated[int, msgspec.Meta(ge=_EARLIEST_MS, le=_LATEST_MS)]
"""Unix ms within the years 1 to 9999."""


class Incident(msgspec.Struct, omit_defaults=True):
    """An incident in the form of `incident_object`, plus the name of its channel."""

    channel: str
    kind: IncidentKind
    message_id: str
    since: _Time
    found: _Time
    ended: _Time | None
    sender: str | None
    lacking: dict[str, _Time]
    named_by: list[str]
    waku_hash: str | None
    retrieval_hint: str | None
    tap_hole: bool
    why: str
    # Reports of releases before 0.7 lack this field.
    lacking_others: int | None = None
    channel_name: str | None = None

    @property
    def is_standing(self) -> bool:
        """Whether the incident has not ended."""
        return self.ended is None


class Cause(msgspec.Struct):
    """The displayed part of a likely cause; see `causes.Cause.as_object`."""

    sentence: str


class ReadIncidents(NamedTuple):
    """Incidents of a source, the most recently found incident first.

    Attributes:
        causes: Likely causes by channel. A history, and a monitor of version 0.12 or
            earlier, have none.
        clock_ms: Current event time of the source, Unix ms; for a history, wall time.
        settings: Settings of the model; the defaults if the source has none. A
            history, and a monitor of version 0.15 or earlier, have none.
    """

    incidents: list[Incident]
    causes: dict[str, list[Cause]]
    clock_ms: int
    settings: ObserverSettings = DEFAULTS


class _Answer(msgspec.Struct):
    incidents: list[Incident]
    more: bool
    next: str | None = None
    # A monitor of version 0.8 or earlier does not return its clock.
    clock: _Time | None = None
    causes: dict[str, list[Cause]] = {}
    observer: dict[str, int | float] = {}


class _Span(msgspec.Struct):
    last_event: int | None = None


class _View(msgspec.Struct):
    causes: list[Cause] = []


class _Section(msgspec.Struct):
    views: dict[str, _View]
    incidents: list[Incident] | None = None


class _Report(msgspec.Struct):
    incidents: list[Incident] | None = None
    window: _Span = msgspec.field(default_factory=_Span)
    channels: dict[str, _View] = msgspec.field(default_factory=dict)
    views: dict[str, _Section] = msgspec.field(default_factory=dict)
    observer: dict[str, int | float] = {}


class _Channel(msgspec.Struct):
    id: str


class _Channels(msgspec.Struct):
    channels: list[_Channel]


def read_incidents(source: IncidentSource, wanted: IncidentFilter) -> ReadIncidents:
    """Read incidents from the source, by default a monitor on this machine.

    Raises:
        click.ClickException: The source cannot be read, the monitor is unreachable, or
            the source does not know the channel.
    """
    found = _selected(source, wanted)
    if wanted.channel is not None and not found.incidents:
        _check_channel(source, wanted.channel)
    return found


def _check_channel(source: IncidentSource, channel: str) -> None:
    """Check that the source knows a channel of which no incident was selected."""
    every = IncidentFilter(channel, since_ms=None, standing=False)
    if _selected(source, every).incidents:
        return
    if source.report is not None:
        _, section = _read_report(source.report, source.views)
        known = [*section.views, *(one.channel for one in section.incidents or ())]
    elif source.history is not None:
        from connectors.history.query import channels
        from connectors.history.schema import tables_of

        with history_errors(source.history):
            known = channels(source.history, tables_of(kind_of(source.views)))
    elif source.views is None:
        known = _channels_of_monitor(source.api, channel)
    else:
        # The monitor has already refused an unknown kind of view. `channel`, here the
        # name of a view, is not checked: the API does not tell an unknown view from a
        # view without incidents.
        known = [channel]
    if channel not in known:
        message = f"no such channel: {shown(channel)}{did_you_mean(channel, known)}"
        raise click.UsageError(message)


def kind_of(views: str | None) -> AnyKind:
    """Return the kind of view that `IncidentSource.views` names.

    Raises:
        click.UsageError: No kind of view with this prefix has figures.
    """
    if views is None:
        return ROOT_KIND
    try:
        kind = kinds_of(PROTOCOLS).of(views)
    except UnknownKind:
        kind = None
    if kind is None or kind.figures is None:
        message = f"--views {shown(views)}: no protocol has a page with this prefix"
        raise click.UsageError(message)
    return kind


def _channels_of_monitor(url: str, channel: str) -> list[str]:
    """Return the channel if the monitor knows it, else channels to suggest.

    The suggested channels are those with the worst problems. If the monitor gives no
    usable answer, the channel counts as known.
    """
    what = "channels", _Channels
    try:
        ask_monitor(url, "channels", {"id": channel}, what, _TIMEOUT_S)
    except Refused as error:
        if error.status == httpx.codes.NOT_FOUND:
            with suppress(Unreachable):
                found = ask_monitor(url, "channels", {}, what, _TIMEOUT_S).channels
                return [one.id for one in found]
    except Unreachable:
        pass
    return [channel]


def _selected(source: IncidentSource, wanted: IncidentFilter) -> ReadIncidents:
    channel, since_ms, standing = wanted
    if source.report is not None:
        read = _incidents_of_report(source.report, source.views)
        selected = [
            one
            for one in read.incidents
            if channel in (None, one.channel)
            and (one.is_standing or not standing)
            and (since_ms is None or one.is_standing or one.found >= since_ms)
        ]
        names = {one.channel for one in selected}
        causes = {name: some for name, some in read.causes.items() if name in names}
        return read._replace(incidents=selected, causes=causes)
    if source.history is not None:
        query = IncidentQuery(channel, since_ms=since_ms, standing=standing)
        return ReadIncidents(
            _read_history(source.history, query, source.views), {}, wall_ms()
        )
    name = "channel" if source.views is None else "id"
    parameters = {name: channel, "since": since_ms, "standing": standing or None}
    path = "incidents"
    if source.views is not None:
        path = f"views/{quote(source.views, '')}/incidents"
    found = _read_pages(source.api, path, parameters)
    settings = _settings_of(found.observer)
    clock_ms = found.clock or wall_ms()
    return ReadIncidents(found.incidents, found.causes, clock_ms, settings)


def _read_pages(url: str, path: str, parameters: dict[str, Any]) -> _Answer:
    """Return the first page of a monitor's incidents, with those of all later pages."""
    what = "incidents", _Answer
    found = ask_monitor(url, path, parameters, what, _TIMEOUT_S)
    after = found.next
    while after is not None:
        asked = parameters | {"after": after}
        page = ask_monitor(url, path, asked, what, _TIMEOUT_S)
        if page.next == after:
            # A monitor that returns the same page again never comes to an end.
            break
        found.incidents += page.incidents
        found.causes |= page.causes
        found.more, after = page.more, page.next
    if found.more:
        # A monitor of an old version returns only its first page.
        logger.warning(
            "only the %s latest incidents are shown: to see others, give --channel "
            "or --history",
            f"{len(found.incidents):,}",
        )
    return found


def _settings_of(values: dict[str, int | float]) -> ObserverSettings:
    """Return settings with these values; names unknown to this release are ignored."""
    names = {field.name for field in fields(ObserverSettings)}
    known: dict[str, Any] = {k: v for k, v in values.items() if k in names}
    return replace(DEFAULTS, **known)


def _incidents_of_report(path: Path, views: str | None) -> ReadIncidents:
    report, section = _read_report(path, views)
    if (found := section.incidents) is None:
        message = f"--from-report: {path} was written without --report-detail"
        raise click.UsageError(message)
    # An incident may be found or end later than the last record, at a deadline.
    times = [one.found if one.ended is None else one.ended for one in found]
    clock_ms = max([report.window.last_event or 0, *times])
    causes = {name: one.causes for name, one in section.views.items() if one.causes}
    found.sort(key=lambda one: -one.found)
    return ReadIncidents(found, causes, clock_ms, _settings_of(report.observer))


def _read_report(path: Path, views: str | None) -> tuple[_Report, _Section]:
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"--from-report: {path} cannot be read: {error.strerror}"
        raise click.UsageError(message) from error
    where = f"--from-report: {path} is not a report of sds-monitor: "
    with wrong_use(*UNREADABLE, where=where):
        report = msgspec.json.decode(content, type=_Report)
    if views is None:
        return report, _Section(report.channels, report.incidents)
    if (section := report.views.get(views)) is None:
        message = f"--views: {path} has no views {shown(views)}"
        raise click.UsageError(message)
    return report, section


def _read_history(
    directory: Path, query: IncidentQuery, views: str | None
) -> list[Incident]:
    # The import is local, because importing DuckDB takes half a second, and the other
    # sources do not need it.
    from connectors.history.query import incident_rows
    from connectors.history.schema import tables_of

    tables = tables_of(kind_of(views))
    with history_errors(directory):
        rows = incident_rows(directory, query, tables)
    # `why` is read from the history, because the text depends on the settings of the
    # monitor that found the incident.
    return [
        msgspec.convert(
            row
            | {
                "channel": row[tables.label],
                # Rows of releases before 0.7 lack this field.
                "lacking_others": row.get("lacking_others") or 0,
            },
            Incident,
        )
        for row in rows
    ]


@contextmanager
def history_errors(directory: Path) -> Iterator[None]:
    """Turn errors of reading a history into usage errors."""
    try:
        with wrong_use(NoHistory, DamagedHistory, where="--history: "):
            yield
    except OSError as error:
        message = f"--history: {directory} cannot be read: {error.strerror}"
        raise click.UsageError(message) from error
