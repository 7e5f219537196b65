"""``sds-monitor import``."""

from __future__ import annotations

from typing import Any

import click

from connectors.kafka.settings import MAX_PARTITIONS
from streaming.cli import commands
from streaming.cli.kafka_options import kafka_options
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.values import EXISTING_FILE, Number


@commands.command(
    "import", "sds-monitor import --bootstrap localhost:9092 --restamp frames.jsonl.xz"
)
@kafka_options(topic_help="Topic to write frames to. A missing topic is created.")
@setting(
    "--partitions",
    type=click.IntRange(1, MAX_PARTITIONS),
    panel=Panel.KAFKA,
    help="Number of partitions of the topic, if the command creates it; by default, "
    "the highest partition number in FILE, plus 1.",
)
@setting(
    "--speed",
    type=Number(0),
    default=0.0,
    panel=Panel.TIME,
    help="Speed, as a multiple of real time; 0: as fast as possible.",
)
@setting(
    "--restamp",
    is_flag=True,
    panel=Panel.TIME,
    help="Shift all record times so that the last record gets the time at which it is "
    "written. If --speed is above 0 and below 1, the first record, instead of the last "
    "record, gets the time at which it is written.",
)
@log_option()
@click.argument("file", type=EXISTING_FILE, envvar="SDS_MONITOR_FILE")
def command(**options: Any) -> None:
    """Write the records of FILE to a topic.

    Each line of FILE is a record that `sds-monitor export` wrote, or an answer of a
    Waku node's REST API. FILE may be compressed (.xz, .gz). The command checks every
    line before it writes the first record.
    """
    from streaming.cli.actions.import_ import import_records

    import_records(**options)
