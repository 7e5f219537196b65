"""``sds-monitor import``."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.kafka.settings import MAX_PARTITIONS, KafkaSettings
from streaming.cli.kafka_options import kafka_options
from streaming.cli.settings import Number, config_option, log_option, setting


@click.command(
    "import",
    epilog="Example: sds-monitor import --bootstrap localhost:9092 "
    "--restamp frames.jsonl.xz",
)
@config_option
@kafka_options(topic_help="Topic of frames; created if it is missing.")
@setting(
    "--partitions",
    type=click.IntRange(1, MAX_PARTITIONS),
    help="Partitions of the topic, if it is created; by default as many as the "
    "records of the file need.",
)
@setting(
    "--speed",
    type=Number(0),
    default=0.0,
    help="Seconds of record time per second; 0 for as fast as possible.",
)
@setting(
    "--restamp",
    is_flag=True,
    help="Move all record times by the same amount, so that the last record is "
    "written at its own time.",
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

    FILE has records that sds-monitor export wrote, or answers of a Waku node's REST
    API, one a line; it may be compressed (.xz, .gz). Checks every line before it writes
    anything.
    """
    from streaming.cli.actions.import_ import import_records

    import_records(kafka, file, partitions, speed, restamp)
