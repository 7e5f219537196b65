"""``sds-monitor inspect``."""

from __future__ import annotations

import click

from connectors.kafka.settings import KafkaSettings
from streaming.cli.kafka_options import kafka_options
from streaming.cli.settings import STDIN, config_option, setting


@click.command(
    "inspect",
    epilog="Example: sds-monitor inspect sds.frames:2:1714 --bootstrap localhost:9092",
)
@config_option
@kafka_options(required=False, topic_help=None)
@setting(
    "--hex",
    "is_hex",
    is_flag=True,
    help="Read hexadecimal digits; spaces, line ends and 0x may be among them.",
)
@setting("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument(
    "file",
    metavar="[FILE | TOPIC:PARTITION:OFFSET]",
    default=STDIN,
    envvar="SDS_MONITOR_FILE",
)
def command(
    kafka: KafkaSettings | None, is_hex: bool, as_json: bool, file: str
) -> None:
    """Decode one frame, and explain the error if it cannot be decoded.

    FILE has the bytes of a frame, or one line of an exported file, or a Waku message
    as the REST API of a node returns it; - or nothing is standard input. A record of a
    topic, such as the source of a dead letter, needs --bootstrap. Exit code 1 if the
    monitor would make it a dead letter.
    """
    from streaming.cli.actions.inspect import inspect

    inspect(kafka, file, is_hex, as_json)
