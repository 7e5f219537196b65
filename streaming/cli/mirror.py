"""``sds-monitor mirror``."""

from __future__ import annotations

from typing import Any

import click

from streaming.cli import commands
from streaming.cli.kafka_options import kafka_options, partitions_option
from streaming.cli.node_options import (
    mirroring_options,
    node_options,
    traffic_options,
)
from streaming.cli.serving_options import serving_options
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.values import DIRECTORY


def _refuse_from_file(
    context: click.Context, parameter: click.Parameter, value: Any
) -> None:
    if value is not None:
        message = f"mirror --from-file is renamed: run sds-monitor import {value}"
        raise click.UsageError(message)


@commands.command(
    "mirror",
    "sds-monitor mirror --rest http://127.0.0.1:8645 "
    "--pubsub-topic /waku/2/rs/1/0 --bootstrap localhost:9092 --state ./mirror",
)
@kafka_options(topic_help="Topic to write frames to. A missing topic is created.")
@partitions_option
@setting(
    "--from-file",
    hidden=True,
    # Users of this old option do not give the options that are required now. This
    # option is checked first, because otherwise the error would be about the others.
    is_eager=True,
    expose_value=False,
    callback=_refuse_from_file,
)
@node_options()
@setting(
    "--state",
    required=True,
    type=DIRECTORY,
    panel=Panel.STORAGE,
    help="State directory, with the records that wait for Kafka. If the mirror "
    "restarts with the same directory, it continues where it stopped.",
)
@setting(
    "--observer",
    panel=Panel.KAFKA,
    help="Tap id in the records; by default, a random id for each new --state.",
)
@traffic_options
@mirroring_options
@serving_options("the mirror's metrics", 9109)
@log_option()
def command(**options: Any) -> None:
    """Copy SDS traffic from the REST API of Waku nodes into Kafka.

    The mirror reads the messages that the nodes relay. If it missed messages, it reads
    them from the nodes' stores. While Kafka is unreachable, records wait on disk.

    You can kill the command at any moment. If you restart the mirror with the same
    --state, it continues where it stopped. If the mirror may have missed messages, its
    records show a capture gap.
    """
    from streaming.cli.actions.mirror import mirror

    mirror(**options)
