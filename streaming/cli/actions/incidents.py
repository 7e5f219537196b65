"""Lists incidents, or groups them by the participant that lacks messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sds_core.observer.channel_table import ChannelTable
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.lacking import Lack, StandingIncident, is_followed, lacks_of
from sds_core.text import counted, iso_time, printable
from streaming.cli.actions.incident_sources import (
    Cause,
    Incident,
    ReadIncidents,
    kind_of,
    read_incidents,
)
from streaming.cli.exit_codes import ExitCode
from streaming.cli.incident_options import IncidentFilter, IncidentSource
from streaming.cli.output import print_json

_STYLES = {
    IncidentKind.LOST: "bold red",
    IncidentKind.UNDELIVERED: "bold red",
    IncidentKind.UNACKNOWLEDGED: "bold yellow",
}


def list_incidents(
    source: IncidentSource,
    selection: IncidentFilter,
    table: ChannelTable,
    as_json: bool,
) -> None:
    """Print incidents, the most recently found incident first.

    The name of a channel is from `table`; if `table` has no name, from `source`.
    """
    read = read_incidents(source, selection)
    incidents = read.incidents
    for incident in incidents:
        incident.channel_name = table.of(incident.channel).name or incident.channel_name
    _print(incidents, as_json)
    if not as_json:
        _print_causes(read.causes)
    if incidents:
        raise click.exceptions.Exit(ExitCode.FINDING)


def _print(incidents: list[Incident], as_json: bool) -> None:
    console = Console()
    for incident in incidents:
        if as_json:
            print_json(msgspec.to_builtins(incident))
        elif console.is_terminal:
            _print_block(console, incident)
        else:
            facts = (f"{word} {value}" for word, value in _facts(incident).items())
            click.echo("; ".join([_title(incident), *facts]))
    if not (incidents or as_json):
        click.echo("no incidents")


def _print_block(console: Console, incident: Incident) -> None:
    console.print(
        Text(
            _title(incident), _STYLES[incident.kind] if incident.is_standing else "dim"
        )
    )
    facts = Table.grid(padding=(0, 2))
    for word, value in _facts(incident).items():
        # Long values are wrapped, not truncated, so that people can copy whole ids.
        facts.add_row(Text(f"  {word}", "dim"), Text(value, overflow="fold"))
    console.print(facts)
    console.print()


def _title(incident: Incident) -> str:
    if incident.ended is None:
        return incident.kind.value
    return f"{incident.kind.value}, ended {iso_time(incident.ended)}"


def _facts(incident: Incident) -> dict[str, str]:
    facts = {
        "message": printable(incident.message_id),
        "channel": printable(incident.channel),
        "channel name": printable(incident.channel_name or ""),
        "sender": printable(incident.sender or ""),
        "lacked by": _lacking(incident),
        "named by": ", ".join(map(printable, incident.named_by)),
        "since": iso_time(incident.since),
        "found": iso_time(incident.found),
        "Waku hash": printable(incident.waku_hash or ""),
        "retrieval hint": printable(incident.retrieval_hint or ""),
        "why": printable(incident.why),
        "note": "the taps were interrupted shortly before or during the incident, so "
        "they may have missed the message"
        if incident.tap_hole
        else "",
    }
    return {word: value for word, value in facts.items() if value}


def _lacking(incident: Incident) -> str:
    if incident.lacking:
        named = [
            f"{printable(who)} since {iso_time(since_ms)}"
            for who, since_ms in incident.lacking.items()
        ]
        if incident.lacking_others:
            named.append(counted(incident.lacking_others, "other"))
        return ", ".join(named)
    return "nobody that a filter shows" if incident.is_standing else ""


def _print_causes(causes: Mapping[str, Sequence[Cause]]) -> None:
    for channel, some in causes.items():
        for cause in some:
            sentence = printable(cause.sentence)
            click.echo(f"likely cause; channel {printable(channel)}; {sentence}")


def list_lacks(
    source: IncidentSource,
    selection: IncidentFilter,
    table: ChannelTable,
    as_json: bool,
) -> None:
    """Group unresolved incidents, and print the groups in the order of `lacks_of`."""
    read = read_incidents(source, selection._replace(standing=True))
    names = {one.channel: one.channel_name or "" for one in read.incidents}
    standing = (_standing(one, read) for one in read.incidents)
    lacks = lacks_of(standing, kind_of(source.views).personal)
    for one in lacks:
        name = table.of(one.channel).name or names[one.channel]
        if as_json:
            print_json(_lack_object(one, name))
        else:
            click.echo(_lack_line(one, name))
    if lacks and not as_json:
        _print_causes(read.causes)
    if not (lacks or as_json):
        click.echo("no unresolved incidents")
    if lacks:
        raise click.exceptions.Exit(ExitCode.FINDING)


def _standing(one: Incident, read: ReadIncidents) -> StandingIncident:
    return StandingIncident(
        one.channel,
        one.kind,
        one.message_id,
        one.since,
        one.lacking,
        one.lacking_others or 0,
        one.tap_hole,
        is_followed(one.since, read.clock_ms, read.settings),
    )


def _lack_object(one: Lack, name: str) -> dict[str, str | int | None]:
    return {
        "channel": one.channel,
        "channel_name": name or None,
        "kind": one.kind.value,
        "participant": one.participant,
        "messages": one.messages,
        "at_least": one.at_least,
        "since": one.since_ms,
        "tap_hole": one.tap_hole,
        "followed": one.followed,
    }


def _lack_line(one: Lack, name: str) -> str:
    sentence = one.sentence(printable(one.participant or ""), iso_time(one.since_ms))
    facts = [sentence, f"channel {printable(one.channel)}"]
    if name:
        facts.append(f"channel name {printable(name)}")
    if one.tap_hole:
        facts.append(f"taps may have missed {one.tap_hole} of the messages")
    return "; ".join(facts)
