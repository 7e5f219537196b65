"""``sds-monitor simulate``."""

from __future__ import annotations

import math
from pathlib import Path

import click

from connectors.kafka.settings import KafkaSettings
from connectors.simulator import scenario_names
from streaming.cli.commands import Command
from streaming.cli.config_file import config_option
from streaming.cli.kafka_options import kafka_options, partitions_option
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.values import Duration, Number


@click.command(
    "simulate",
    cls=Command,
    epilog="Example: sds-monitor simulate --bootstrap localhost:9092 "
    "--scenario lossy --seed 7 --truth truth.json",
)
@config_option
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
    help="Speed, in simulated seconds per second; 0 writes as fast as possible.",
)
@setting(
    "--truth",
    type=click.Path(dir_okay=False, path_type=Path),
    panel=Panel.OUTPUT,
    help="Write the truth about the traffic to this file (JSON).",
)
@log_option()
def command(
    kafka: KafkaSettings,
    partitions: int,
    scenario: str,
    seed: int,
    duration: float | None,
    speed: float,
    truth: Path | None,
) -> None:
    """Simulate SDS participants on a lossy network, mirrored into Kafka.

    The participants and taps are simulated, but the frames are real SDS frames. If
    --speed is above 1, record times begin in the past. The time of the last record is
    about the time when the command writes the record.
    """
    from streaming.cli.actions.simulate import read_scenario

    what = read_scenario(scenario, duration)
    if truth is not None and not truth.parent.is_dir():
        message = f"--truth: {truth.parent} is no directory: create it first"
        raise click.UsageError(message)
    if not speed < math.inf:
        message = f"--speed is {speed}: give a number from 0"
        raise click.UsageError(message)

    from streaming.cli.actions.simulate import simulate

    simulate(kafka, partitions, what, seed, speed, truth)
