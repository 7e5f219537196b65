"""``sds-monitor incidents``."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import click
import httpx
import msgspec
from click.core import ParameterSource
from rich.console import Console
from rich.table import Table
from rich.text import Text

from connectors.history.errors import DamagedHistory, NoHistory
from sds_core.observer.incidents import IncidentKind, IncidentQuery, incident_object
from sds_core.text import iso_time, printable
from streaming.cli import FINDING, UNREACHABLE
from streaming.cli.channels import channel_table, channels_option
from streaming.cli.log import logger
from streaming.cli.settings import Time, config_option, setting

_API = "http://127.0.0.1:9108"
_TIMEOUT_S = 30.0
_NEAREST_FIRST = (
    ParameterSource.COMMANDLINE,
    ParameterSource.ENVIRONMENT,
    ParameterSource.DEFAULT_MAP,
)
_EARLIEST_MS = int(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * 1000
_LATEST_MS = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1000
_STYLES = {
    IncidentKind.LOST: "bold red",
    IncidentKind.UNDELIVERED: "bold red",
    IncidentKind.UNACKNOWLEDGED: "bold yellow",
}


@click.command(
    "incidents",
    epilog="Example: sds-monitor incidents --channel my-channel "
    "--since 2026-11-21T08:00:00Z",
)
@config_option
@setting(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Read them from a report that was written with --report-detail.",
)
@setting(
    "--api",
    metavar="URL",
    help=f"Ask the monitor that serves its page there.  [default: {_API}]",
)
@setting(
    "--history",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Read them from the history that a monitor left in this directory.",
)
@channels_option
@setting("--channel", help="Only those of this channel.")
@setting(
    "--since",
    type=Time(),
    help="Only those found since then, and those that still stand.",
)
@setting("--standing", is_flag=True, help="Only those that still stand.")
@setting("--json", "as_json", is_flag=True, help="One JSON object a line.")
def command(
    report: Path | None,
    api: str | None,
    history: Path | None,
    channels: Path | None,
    channel: str | None,
    since: int | None,
    standing: bool,
    as_json: bool,
) -> None:
    """List the messages behind the figures: lost, undelivered, unacknowledged.

    Each with who lacks it and since when, its Waku hash and retrieval hint, and why
    the monitor says so; found last first. Exit code 1 if there are any. Channels have
    the names of the monitor that is asked, or of --channels.
    """
    table = channel_table(channels)
    given = _nearest(report=report, api=api, history=history)
    if len(given) > 1:
        message = "give one of --report, --api and --history"
        raise click.UsageError(message)
    if "report" in given:
        found = [
            one
            for one in _read_report(given["report"])
            if channel in (None, one.channel)
            and (one.is_standing or not standing)
            and (since is None or one.is_standing or one.found >= since)
        ]
    elif "history" in given:
        query = IncidentQuery(channel, since_ms=since, standing=standing)
        found = _read_history(given["history"], query)
    else:
        parameters = {"channel": channel, "since": since, "standing": standing or None}
        found = _ask(given.get("api", _API), parameters)
    for one in found:
        one.channel_name = table.of(one.channel).name or one.channel_name
    _show(found, as_json)
    if found:
        raise click.exceptions.Exit(FINDING)


def _nearest(**places: Any) -> dict[str, Any]:
    """Those that are given by flag; else those by environment; else those by file."""
    context = click.get_current_context()
    for source in _NEAREST_FIRST:
        given = {
            name: value
            for name, value in places.items()
            if context.get_parameter_source(name) is source
        }
        if given:
            return given
    return {}


_Time = Annotated[int, msgspec.Meta(ge=_EARLIEST_MS, le=_LATEST_MS)]
"""Unix ms, of which a date can be told."""


class _Incident(msgspec.Struct, omit_defaults=True):
    """An incident as `incident_object` gives it, and the name of its channel."""

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
    channel_name: str | None = None

    @property
    def is_standing(self) -> bool:
        return self.ended is None


class _Answer(msgspec.Struct):
    incidents: list[_Incident]
    more: bool


class _Refusal(msgspec.Struct):
    error: str


class _Report(msgspec.Struct):
    incidents: list[_Incident] | None = None


class _Unreachable(click.ClickException):
    exit_code = UNREACHABLE


def _read_report(path: Path) -> list[_Incident]:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Report).incidents
    except OSError as error:
        message = f"--report: {path} cannot be read: {error.strerror}"
        raise click.UsageError(message) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"--report: {path} is no report of sds-monitor: {error}"
        raise click.UsageError(message) from error
    if found is None:
        message = f"--report: {path} was written without --report-detail"
        raise click.UsageError(message)
    return sorted(found, key=lambda one: -one.found)


def _read_history(directory: Path, query: IncidentQuery) -> list[_Incident]:
    # Takes half a second that the other sources need not wait for.
    from connectors.history.query import find_incidents

    try:
        found = find_incidents(directory, query)
    except (NoHistory, DamagedHistory) as error:
        message = f"--history: {error}"
        raise click.UsageError(message) from error
    except OSError as error:
        message = f"--history: {directory} cannot be read: {error.strerror}"
        raise click.UsageError(message) from error
    return [msgspec.convert(incident_object(one), _Incident) for one in found]


def _ask(url: str, parameters: dict[str, Any]) -> list[_Incident]:
    """Ask a running monitor; None asks for nothing in particular."""
    try:
        answer = httpx.get(
            f"{url.rstrip('/')}/api/v1/incidents",
            params={k: v for k, v in parameters.items() if v is not None},
            timeout=_TIMEOUT_S,
        )
        answer.raise_for_status()
        told = msgspec.json.decode(answer.content, type=_Answer)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        message = f"--api: {url!r} is no URL such as {_API}: {error}"
        raise click.UsageError(message) from error
    except httpx.HTTPStatusError as error:
        raise _Unreachable(_refusal(url, error.response)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{url} gives no incidents ({error}): is it sds-monitor's?"
        raise _Unreachable(message) from error
    except httpx.RequestError as error:
        message = f"no monitor answers at {url} ({error}): is it running?"
        raise _Unreachable(message) from error
    if told.more:
        logger.warning(
            "only the %s found last are shown: narrow it by --channel or --since",
            f"{len(told.incidents):,}",
        )
    return told.incidents


def _refusal(url: str, answer: httpx.Response) -> str:
    """What an answer that is none says of itself."""
    try:
        why = msgspec.json.decode(answer.content, type=_Refusal).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"{url} answers {answer.status_code}: is it sds-monitor's?"
    return f"{url} answers {answer.status_code}: {printable(why)}"


def _show(found: list[_Incident], as_json: bool) -> None:
    console = Console()
    for one in found:
        if as_json:
            click.echo(json.dumps(msgspec.to_builtins(one), sort_keys=True))
        elif console.is_terminal:
            _print_block(console, one)
        else:
            click.echo(_line(one))
    if not (found or as_json):
        click.echo("no incidents")


def _print_block(console: Console, one: _Incident) -> None:
    """An incident for a terminal: what it is, and below it what is known of it."""
    console.print(Text(_title(one), _STYLES[one.kind] if one.is_standing else "dim"))
    facts = Table.grid(padding=(0, 2))
    for word, value in _facts(one).items():
        # Ids are to be copied from here: folded, not cut off.
        facts.add_row(Text(f"  {word}", "dim"), Text(value, overflow="fold"))
    console.print(facts)
    console.print()


def _line(one: _Incident) -> str:
    """An incident in one line."""
    facts = (f"{word} {value}" for word, value in _facts(one).items())
    return "; ".join([_title(one), *facts])


def _title(one: _Incident) -> str:
    if one.ended is None:
        return one.kind.value
    return f"{one.kind.value}, ended {iso_time(one.ended)}"


def _facts(one: _Incident) -> dict[str, str]:
    """All else in words; what there is nothing to say of is left out."""
    facts = {
        "message": printable(one.message_id),
        "channel": printable(one.channel),
        "channel name": printable(one.channel_name or ""),
        "sender": printable(one.sender or ""),
        "lacked by": _lacking(one),
        "named by": ", ".join(map(printable, one.named_by)),
        "since": iso_time(one.since),
        "found": iso_time(one.found),
        "Waku hash": printable(one.waku_hash or ""),
        "retrieval hint": printable(one.retrieval_hint or ""),
        "why": printable(one.why),
        "note": "every tap had a hole meanwhile: it may be of the taps' making"
        if one.tap_hole
        else "",
    }
    return {word: value for word, value in facts.items() if value}


def _lacking(one: _Incident) -> str:
    if one.lacking:
        return ", ".join(
            f"{printable(who)} since {iso_time(since_ms)}"
            for who, since_ms in one.lacking.items()
        )
    return "nobody that a filter shows" if one.is_standing else ""
