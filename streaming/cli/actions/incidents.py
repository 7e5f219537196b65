"""Lists incidents."""

from __future__ import annotations

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sds_core.observer.channel_table import ChannelTable
from sds_core.observer.incidents import IncidentKind
from sds_core.text import counted, iso_time, printable
from streaming.cli import FINDING
from streaming.cli.actions.incident_causes import print_causes
from streaming.cli.actions.incident_sources import Incident, read_incidents
from streaming.cli.incident_options import IncidentFilter, IncidentSource
from streaming.cli.output import print_json

_STYLES = {
    IncidentKind.LOST: "bold red",
    IncidentKind.UNDELIVERED: "bold red",
    IncidentKind.UNACKNOWLEDGED: "bold yellow",
}


def list_incidents(
    source: IncidentSource, wanted: IncidentFilter, table: ChannelTable, as_json: bool
) -> None:
    """Print incidents, those found last first.

    Args:
        source: Source to read from.
        wanted: Selected incidents.
        table: Names of channels, before those that the source gives.
        as_json: Whether to print JSON.

    Raises:
        click.exceptions.Exit: There are incidents.
    """
    read = read_incidents(source, wanted)
    found = read.incidents
    for one in found:
        one.channel_name = table.of(one.channel).name or one.channel_name
    _print(found, as_json)
    if not as_json:
        print_causes(read.causes)
    if found:
        raise click.exceptions.Exit(FINDING)


def _print(found: list[Incident], as_json: bool) -> None:
    console = Console()
    for one in found:
        if as_json:
            print_json(msgspec.to_builtins(one))
        elif console.is_terminal:
            _print_block(console, one)
        else:
            click.echo(_line(one))
    if not (found or as_json):
        click.echo("no incidents")


def _print_block(console: Console, one: Incident) -> None:
    """Print an incident on a terminal: its title, and below it the other facts."""
    console.print(Text(_title(one), _STYLES[one.kind] if one.is_standing else "dim"))
    facts = Table.grid(padding=(0, 2))
    for word, value in _facts(one).items():
        # Folded, not cut off, so that people can copy ids.
        facts.add_row(Text(f"  {word}", "dim"), Text(value, overflow="fold"))
    console.print(facts)
    console.print()


def _line(one: Incident) -> str:
    """Return an incident in one line."""
    facts = (f"{word} {value}" for word, value in _facts(one).items())
    return "; ".join([_title(one), *facts])


def _title(one: Incident) -> str:
    if one.ended is None:
        return one.kind.value
    return f"{one.kind.value}, ended {iso_time(one.ended)}"


def _facts(one: Incident) -> dict[str, str]:
    """Return the facts of an incident as word -> value, without empty ones."""
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
        "note": "the taps were interrupted meanwhile: they may have missed it"
        if one.tap_hole
        else "",
    }
    return {word: value for word, value in facts.items() if value}


def _lacking(one: Incident) -> str:
    if one.lacking:
        named = [
            f"{printable(who)} since {iso_time(since_ms)}"
            for who, since_ms in one.lacking.items()
        ]
        if one.lacking_others:
            named.append(counted(one.lacking_others, "other"))
        return ", ".join(named)
    return "nobody that a filter shows" if one.is_standing else ""
