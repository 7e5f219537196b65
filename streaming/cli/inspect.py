"""``sds-monitor inspect``."""

from __future__ import annotations

from typing import Any

import click

from streaming.cli import commands
from streaming.cli.kafka_options import kafka_options
from streaming.cli.settings import Panel, json_option, setting
from streaming.cli.values import STDIN


@commands.command(
    "inspect", "sds-monitor inspect sds.frames:2:1714 --bootstrap localhost:9092"
)
@kafka_options(required=False, topic_help=None)
@setting(
    "--hex",
    "is_hex",
    is_flag=True,
    panel=Panel.SOURCE,
    help="Read hexadecimal digits. Spaces, line ends and 0x are ignored.",
)
@json_option
@click.argument(
    "file",
    metavar="[FILE | TOPIC:PARTITION:OFFSET]",
    default=STDIN,
    envvar="SDS_MONITOR_FILE",
)
def command(**options: Any) -> None:
    """Decode one frame, or explain why it cannot be decoded.

    FILE contains the bytes of a frame, one line of a file that `export` wrote, or a
    Waku message from the REST API of a node. If FILE is omitted or -, the command reads
    standard input. To decode a record of a topic (for example, the source of a dead
    letter), give TOPIC:PARTITION:OFFSET and --bootstrap.

    If the monitor would treat the record as a dead letter, the exit code is 1.
    """
    from streaming.cli.actions.inspect import inspect

    inspect(**options)
