"""``sds-monitor dead-letter``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from connectors.kafka.settings import (
    DEAD_LETTER_TOPIC,
    KafkaSettings,
)
from sds_core.reason import Reason
from sds_core.text import shown
from streaming.cli.kafka_options import kafka_options
from streaming.cli.settings import Parsed, Time, config_option, setting

if TYPE_CHECKING:
    # At run time they would import a Kafka client, which --help does not need.
    from connectors.kafka.record_source import RecordSource


@click.group(
    "dead-letter",
    epilog="Example: sds-monitor dead-letter list --bootstrap localhost:9092",
)
def command() -> None:
    """Look at records that could not be decoded, and replay those that now can."""


def _common_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(
        (
            config_option,
            kafka_options(topic_help=None),
            setting(
                "--dead-letter-topic",
                default=DEAD_LETTER_TOPIC,
                help="Topic of the dead letters.",
            ),
        )
    ):
        command = option(command)
    return command


_reason_option = setting(
    "--reason",
    type=click.Choice([reason.value for reason in Reason]),
    help="Only dead letters with this reason.",
)


def _parse_place(text: str) -> RecordSource:
    """Parse ``topic:partition:offset``, as header `dead-letter-source` has it."""
    from connectors.kafka.record_source import parse_source

    source = parse_source(text)
    if source is None:
        message = f"{shown(text)} is no TOPIC:PARTITION:OFFSET"
        raise ValueError(message)
    return source


_PLACE = Parsed("TOPIC:PARTITION:OFFSET", _parse_place)


@command.command(
    "list",
    epilog="Example: sds-monitor dead-letter list --bootstrap localhost:9092 "
    "--reason protobuf_error --since 2026-11-21T08:00:00Z",
)
@_common_options
@_reason_option
@setting("--channel", help="Only dead letters whose key is this channel.")
@setting(
    "--since",
    "since_ms",
    type=Time(),
    help="Only dead letters whose record has this time or a later one.",
)
@setting(
    "--limit",
    type=click.IntRange(1),
    default=100,
    help="Maximum number of dead letters to list; the summary counts all.",
)
@setting("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def list_command(
    kafka: KafkaSettings,
    dead_letter_topic: str,
    reason: str | None,
    channel: str | None,
    since_ms: int | None,
    limit: int,
    as_json: bool,
) -> None:
    """List dead letters; exit code 1 if there are any.

    The one written last comes first. A record is listed once, although a crash may have
    written it twice.
    """
    from streaming.cli.actions.dead_letter_list import LetterFilter, list_letters

    selection = LetterFilter(reason, channel, since_ms)
    list_letters(kafka, dead_letter_topic, selection, limit, as_json)


@command.command(
    "show",
    epilog="Example: sds-monitor dead-letter show sds.frames:2:1714 "
    "--bootstrap localhost:9092",
)
@_common_options
@setting("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument(
    "source",
    metavar="SOURCE",
    type=_PLACE,
    envvar="SDS_MONITOR_SOURCE",
)
def show_command(
    kafka: KafkaSettings,
    dead_letter_topic: str,
    as_json: bool,
    source: RecordSource,
) -> None:
    """Print the dead letter of SOURCE, what is wrong with it, and what to do.

    SOURCE is TOPIC:PARTITION:OFFSET, as the list prints it. Exit code 1 if the record
    still cannot be used.
    """
    from streaming.cli.actions.dead_letter_show import print_letter

    print_letter(kafka, dead_letter_topic, source, as_json)


@command.command(
    "replay",
    epilog="Example: sds-monitor dead-letter replay --bootstrap localhost:9092 "
    "--reason bad_header --dry-run",
)
@_common_options
@_reason_option
@setting("--all", "all_letters", is_flag=True, help="Replay all dead letters.")
@setting(
    "--topic",
    "target",
    help="Write to this topic; by default to that of each source.",
)
@setting("--force", is_flag=True, help="Write records that still cannot be used too.")
@setting(
    "--dry-run", is_flag=True, help="Print what would be written, and write nothing."
)
@click.argument(
    "sources",
    metavar="[SOURCE]...",
    nargs=-1,
    type=_PLACE,
    envvar="SDS_MONITOR_SOURCES",
)
def replay_command(
    kafka: KafkaSettings,
    dead_letter_topic: str,
    reason: str | None,
    all_letters: bool,
    target: str | None,
    force: bool,
    dry_run: bool,
    sources: tuple[RecordSource, ...],
) -> None:
    """Write dead letters back to their topic, if they can be used now.

    Key, value, time and headers are those of the record, with source: replay. Their
    times are old: a record more than an hour behind the monitor's clock only counts as
    a frame. The dead letters stay where they are, and nothing records that they were
    replayed: do it once. Exit code 1 if a dead letter was refused or does not exist.
    """
    if sum((bool(sources), reason is not None, all_letters)) != 1:
        message = "choose: SOURCE..., or --reason, or --all"
        raise click.UsageError(message)

    from streaming.cli.actions.dead_letter_replay import Replay

    selection = None if all_letters else reason or frozenset(sources)
    Replay(kafka, dead_letter_topic, target, force, dry_run).run(selection)
