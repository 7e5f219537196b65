"""``sds-monitor import``."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.kafka.settings import MAX_PARTITIONS, KafkaSettings
from streaming.cli.commands import Command
from streaming.cli.config_file import config_option
from streaming.cli.kafka_options import kafka_options
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.values import Number


@click.command(
    "import",
    cls=Command,
    epilog="Example: sds-monitor import --bootstrap localhost:9092 "
    "--restamp frames.jsonl.xz",
)
@config_option
@kafka_options(topic_help="Topic to write frames to. A missing topic is created.")
@setting(
    "--partitions",
    type=click.IntRange(1, MAX_PARTITIONS),
    panel=Panel.KAFKA,
    help="Number of partitions if the command creates the topic; by default, as many "
    "as the records need.",
)
@setting(
    "--speed",
    type=Number(0),
    default=0.0,
    panel=Panel.TIME,
    help="Speed, in seconds of record time per second; 0 writes as fast as possible.",
)
@setting(
    "--restamp",
    is_flag=True,
    panel=Panel.TIME,
    help="Shift all record times so that the last record has the current time.",
)
@log_option()
@click.argument(
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="SDS_MONITOR_FILE",
)
def command(
    kafka: KafkaSettings,
    partitions: int | None,
    speed: float,
    restamp: bool,
    file: Path,
) -> None:
    """Write the records of FILE to a topic.

    Each line of FILE is a record that `sds-monitor export` wrote, or an answer of a
    Waku node's REST API. FILE may be compressed (.xz, .gz). The command checks every
    line before it writes the first record.
    """
    from streaming.cli.actions.import_ import import_records

    import_records(kafka, file, partitions, speed, restamp)
