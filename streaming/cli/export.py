"""``sds-monitor export``."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.kafka.settings import KafkaSettings
from streaming.cli.kafka_options import kafka_options
from streaming.cli.settings import config_option, setting
from streaming.cli.window_options import window_options
from streaming.settings import Window


@click.command(
    "export",
    epilog="Example: sds-monitor export --bootstrap localhost:9092 "
    "--from 2026-11-21T08:00:00Z --to 2026-11-21T09:00:00Z frames.jsonl.xz",
)
@config_option
@kafka_options()
@setting(
    "--channel",
    "channels",
    multiple=True,
    help="Only this channel, and the heartbeats of the taps; may be repeated.",
)
@window_options(required=False)
@click.argument(
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="SDS_MONITOR_FILE",
)
def command(
    kafka: KafkaSettings, channels: tuple[str, ...], window: Window, file: Path
) -> None:
    """Write the records of a topic to FILE, exactly and in order of time.

    One record a line; a file named .xz or .gz is compressed. Reads what the topic
    holds now, bounds included, and changes nothing in Kafka. The file appears, or
    replaces another, when it is complete; sds-monitor import writes it to a topic.
    """
    from streaming.cli.actions.export import export

    export(kafka, channels, window, file)
