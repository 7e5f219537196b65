"""``sds-monitor export``."""

from __future__ import annotations

from typing import Any

import click

from streaming.cli import commands
from streaming.cli.kafka_options import kafka_options
from streaming.cli.settings import Panel, setting
from streaming.cli.values import FILE
from streaming.cli.window_options import window_options


@commands.command(
    "export",
    "sds-monitor export --bootstrap localhost:9092 "
    "--from 2026-11-21T08:00:00Z --to 2026-11-21T09:00:00Z frames.jsonl.xz",
)
@kafka_options()
@setting(
    "--channel",
    "channels",
    multiple=True,
    panel=Panel.CHANNELS,
    help="Write only this channel's records and the taps' heartbeats. Repeatable.",
)
@window_options(required=False)
@click.argument("file", type=FILE, envvar="SDS_MONITOR_FILE")
def command(**options: Any) -> None:
    """Write the records of a topic to FILE, unchanged and in order of time.

    FILE has one record per line. If the name of FILE ends with .xz or .gz, the command
    compresses the file. The command reads the records that the topic contains at
    startup, and changes nothing in Kafka. If FILE exists, the command replaces it only
    after all records are written. If FILE is a device or a pipe, such as /dev/stdout,
    the command writes to it directly. If FILE is a symbolic link, it remains a link.

    To write the file to a topic, use `sds-monitor import`.
    """
    from streaming.cli.actions.export import export

    export(**options)
