"""Lists who lacks how many messages, and since when."""

from __future__ import annotations

import click

from sds_core.observer.channel_table import ChannelTable
from sds_core.observer.lacking import Lack, StandingIncident, is_followed, lacks_of
from sds_core.text import iso_time, printable
from streaming.cli.actions.incident_sources import (
    Incident,
    ReadIncidents,
    kind_of,
    read_incidents,
)
from streaming.cli.actions.incidents import print_causes
from streaming.cli.exit_codes import ExitCode
from streaming.cli.incident_options import IncidentFilter, IncidentSource
from streaming.cli.output import print_json


def list_lacks(
    source: IncidentSource, wanted: IncidentFilter, table: ChannelTable, as_json: bool
) -> None:
    """Print groups of unresolved incidents, the gravest first, with names of channels.

    Raises:
        click.exceptions.Exit: Unresolved incidents were found.
    """
    read = read_incidents(source, wanted._replace(standing=True))
    names = {one.channel: one.channel_name or "" for one in read.incidents}
    standing = (_standing(one, read) for one in read.incidents)
    lacks = lacks_of(standing, kind_of(source.views).personal)
    for one in lacks:
        name = table.of(one.channel).name or names[one.channel]
        if as_json:
            print_json(_object(one, name))
        else:
            click.echo(_line(one, name))
    if lacks and not as_json:
        print_causes(read.causes)
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


def _object(one: Lack, name: str) -> dict[str, str | int | None]:
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


def _line(one: Lack, name: str) -> str:
    sentence = one.sentence(printable(one.participant or ""), iso_time(one.since_ms))
    facts = [sentence, f"channel {printable(one.channel)}"]
    if name:
        facts.append(f"channel name {printable(name)}")
    if one.tap_hole:
        facts.append(f"for {one.tap_hole} of the messages, taps were interrupted")
    return "; ".join(facts)
