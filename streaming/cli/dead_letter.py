"""``sds-monitor dead-letter``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from connectors.kafka.settings import DEAD_LETTER_TOPIC
from sds_core.reason import Reason
from sds_core.text import shown
from streaming.cli import commands
from streaming.cli.commands import Group
from streaming.cli.kafka_options import kafka_options
from streaming.cli.settings import Panel, json_option, setting
from streaming.cli.values import Integer, Parsed, Time

if TYPE_CHECKING:
    # An import at run time would load a Kafka client, which --help does not need.
    from connectors.kafka.record_source import RecordSource


@click.group(
    "dead-letter",
    cls=Group,
    epilog="Example: sds-monitor dead-letter list --bootstrap localhost:9092",
)
def command() -> None:
    """List, print and replay records that could not be decoded."""


_topic_option = setting(
    "--dead-letter-topic",
    default=DEAD_LETTER_TOPIC,
    panel=Panel.KAFKA,
    help="Topic that contains the dead letters.",
)
_reason_option = setting(
    "--reason",
    type=click.Choice([reason.value for reason in Reason]),
    panel=Panel.SOURCE,
    help="Select only dead letters with this reason.",
)


def _parse_place(text: str) -> RecordSource:
    from connectors.kafka.record_source import parse_source

    source = parse_source(text)
    if source is None:
        message = f"{shown(text)} is not a source: use TOPIC:PARTITION:OFFSET"
        raise ValueError(message)
    return source


_PLACE = Parsed("TOPIC:PARTITION:OFFSET", _parse_place)


@commands.command(
    "list",
    "sds-monitor dead-letter list --bootstrap localhost:9092 "
    "--reason protobuf_error --since 2026-11-21T08:00:00Z",
    command,
)
@kafka_options(topic_help=None)
@_topic_option
@_reason_option
@setting(
    "--channel",
    panel=Panel.SOURCE,
    help="Select only dead letters whose key is this channel id.",
)
@setting(
    "--since",
    "since_ms",
    type=Time(),
    panel=Panel.SOURCE,
    help="Select only dead letters whose record time is this time or later.",
)
@setting(
    "--limit",
    type=Integer(1),
    default=100,
    panel=Panel.OUTPUT,
    help="Maximum number of dead letters in the list. The summary below the list "
    "counts all dead letters.",
)
@json_option
def list_command(**options: Any) -> None:
    """List dead letters, the newest first.

    After a crash, Kafka may contain a dead letter twice, but the list shows it once. If
    the command finds dead letters, the exit code is 1.
    """
    from streaming.cli.actions.dead_letter import list_letters

    list_letters(**options)


@commands.command(
    "show",
    "sds-monitor dead-letter show sds.frames:2:1714 --bootstrap localhost:9092",
    command,
)
@kafka_options(topic_help=None)
@_topic_option
@json_option
@click.argument("source", metavar="SOURCE", type=_PLACE, envvar="SDS_MONITOR_SOURCE")
def show_command(**options: Any) -> None:
    """Print a dead letter, its error, and the remedy.

    SOURCE is the original record's TOPIC:PARTITION:OFFSET, as `list` prints it. If the
    record is still invalid, the exit code is 1.
    """
    from streaming.cli.actions.dead_letter import print_letter

    print_letter(**options)


@commands.command(
    "replay",
    "sds-monitor dead-letter replay --bootstrap localhost:9092 "
    "--reason bad_header --dry-run",
    command,
)
@kafka_options(topic_help=None)
@_topic_option
@_reason_option
@setting(
    "--all",
    "all_letters",
    is_flag=True,
    panel=Panel.SOURCE,
    help="Select all dead letters.",
)
@setting(
    "--topic",
    "target",
    panel=Panel.KAFKA,
    help="Topic to write to; by default, the original topic of each record.",
)
@setting("--force", is_flag=True, help="Also write records that are still invalid.")
@setting("--dry-run", is_flag=True, help="Print the records, but do not write them.")
@click.argument(
    "sources",
    metavar="[SOURCE]...",
    nargs=-1,
    type=_PLACE,
    envvar="SDS_MONITOR_SOURCES",
)
def replay_command(
    reason: str | None,
    all_letters: bool,
    sources: tuple[RecordSource, ...],
    **options: Any,
) -> None:
    """Write dead letters back to their original topic, if they are now valid.

    The new record has the key, value, time and headers of the original record, except
    that the header `source` is `replay`. If the record's time is more than an hour
    before the monitor's clock, the monitor counts the frame, but not its message.

    The dead letters remain in the dead-letter topic, and nothing marks them as
    replayed, so replay each of them only once. If a dead letter is refused or does not
    exist, the exit code is 1.
    """
    if sum((bool(sources), reason is not None, all_letters)) != 1:
        message = "give exactly one of SOURCE..., --reason and --all"
        raise click.UsageError(message)

    from streaming.cli.actions.dead_letter import Replay

    selection = None if all_letters else reason or frozenset(sources)
    Replay(**options).run(selection)
