"""``sds-monitor incidents``."""

from __future__ import annotations

from typing import Any

import click

from streaming.cli import commands
from streaming.cli.channels import table_option
from streaming.cli.incident_options import filter_options, source_options
from streaming.cli.settings import Panel, json_option, setting


@commands.command(
    "incidents",
    "sds-monitor incidents --channel my-channel "
    "--since 2026-11-21T08:00:00Z\n\n"
    "Who lacks what: sds-monitor incidents --by participant",
)
@source_options
@table_option
@filter_options
@setting(
    "--by",
    type=click.Choice(["message", "participant"]),
    default="message",
    panel=Panel.OUTPUT,
    help="List messages, or the participants that lack messages.",
)
@json_option
def command(by: str, **options: Any) -> None:
    """List messages that are lost, undelivered or unacknowledged.

    The most recently found problem is first. For each message, the command prints the
    Waku hash, the retrieval hint, and why the message is listed. It also prints which
    participants lack the message, and since when. The names of channels come from the
    monitor or from --channels.

    If incidents are found, the exit code is 1.
    """
    from streaming.cli.actions.incidents import list_incidents, list_lacks

    action = list_lacks if by == "participant" else list_incidents
    action(**options)
