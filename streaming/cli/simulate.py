"""``sds-monitor simulate``."""

from __future__ import annotations

from typing import Any

import click

from connectors.simulator import scenario_names
from streaming.cli import commands
from streaming.cli.kafka_options import kafka_options, partitions_option
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.values import FILE, Duration, Number


@commands.command(
    "simulate",
    "sds-monitor simulate --bootstrap localhost:9092 "
    "--scenario lossy --seed 7 --truth truth.json",
)
@kafka_options(topic_help="Topic to write frames to. A missing topic is created.")
@partitions_option
@setting(
    "--scenario",
    default="lossy",
    panel=Panel.TRAFFIC,
    help=f"Scenario: one of {', '.join(scenario_names())}, or a TOML file.",
)
@setting(
    "--seed",
    type=click.IntRange(0),
    default=1,
    panel=Panel.TRAFFIC,
    help="Random seed. The same seed gives the same traffic.",
)
@setting(
    "--duration",
    type=Duration("s", 0, min_open=True),
    panel=Panel.TRAFFIC,
    help="Duration of the traffic; by default, the scenario's duration.",
)
@setting(
    "--speed",
    type=Number(0),
    default=1.0,
    panel=Panel.TRAFFIC,
    help="Speed, as a multiple of real time; 0: as fast as possible.",
)
@setting(
    "--truth",
    type=FILE,
    panel=Panel.OUTPUT,
    help="Write a truth file (JSON) that reports what really happened to each message.",
)
@log_option()
def command(**options: Any) -> None:
    """Simulate SDS participants on a lossy network, and write their traffic to Kafka.

    The participants and taps are simulated, but the frames are real SDS frames. If
    --speed is 0 or above 1, the record times begin in the past, and reach the current
    time at the last record.
    """
    from streaming.cli.actions.simulate import simulate

    simulate(**options)
