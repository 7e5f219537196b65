"""``sds-monitor incidents``."""

from __future__ import annotations

from pathlib import Path

import click

from streaming.cli.channels import channel_table, channels_option
from streaming.cli.incident_options import (
    IncidentFilter,
    IncidentSource,
    filter_options,
    source_options,
)
from streaming.cli.settings import config_option, setting


@click.command(
    "incidents",
    epilog="Example: sds-monitor incidents --channel my-channel "
    "--since 2026-11-21T08:00:00Z\n\n"
    "Who lacks what: sds-monitor incidents --by participant",
)
@config_option
@source_options
@channels_option
@filter_options
@setting(
    "--by",
    type=click.Choice(["message", "participant"]),
    default="message",
    show_default=True,
    help="List single messages, or who lacks how many messages since when.",
)
@setting("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def command(
    source: IncidentSource,
    channels: Path | None,
    selection: IncidentFilter,
    by: str,
    as_json: bool,
) -> None:
    """List the messages behind the figures: lost, undelivered, unacknowledged.

    Each with who lacks it and since when, its Waku hash and retrieval hint, and why
    the monitor reports it; the one found last comes first. Exit code 1 if there are
    any. Channels have the names that the monitor or --channels gives them.
    """
    from streaming.cli.actions.incidents import list_incidents
    from streaming.cli.actions.lacks import list_lacks

    action = list_lacks if by == "participant" else list_incidents
    action(source, selection, channel_table(channels), as_json)
