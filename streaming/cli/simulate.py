"""``sds-monitor simulate``."""

from __future__ import annotations

import math
from pathlib import Path

import click

from connectors.kafka.settings import KafkaSettings
from connectors.simulator import scenario_names
from streaming.cli.kafka_options import kafka_options, partitions_option
from streaming.cli.settings import Number, config_option, log_option, setting


@click.command(
    "simulate",
    epilog="Example: sds-monitor simulate --bootstrap localhost:9092 "
    "--scenario lossy --seed 7 --truth truth.json",
)
@config_option
@kafka_options(topic_help="Topic of frames; created if it is missing.")
@partitions_option
@setting(
    "--scenario",
    default="lossy",
    help=f"One of {', '.join(scenario_names())}, or a TOML file.",
)
@setting(
    "--seed",
    type=click.IntRange(0),
    default=1,
    help="Random seed; the same seed gives the same traffic.",
)
@setting(
    "--duration",
    type=Number(0, min_open=True),
    help="Seconds in which messages are sent; by default as the scenario says.",
)
@setting(
    "--speed",
    type=Number(0),
    default=1.0,
    help="Simulated seconds per second; 0 for as fast as possible.",
)
@setting(
    "--truth",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what really happened to this file (JSON).",
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

    Participants and taps are simulated; their frames are real SDS frames. If it runs
    faster than real time, the traffic lies in the past and ends about when the last
    record is written.
    """
    from streaming.cli.actions.simulate import read_scenario

    what = read_scenario(scenario, duration)
    if truth is not None and not truth.parent.is_dir():
        message = f"there is no directory {truth.parent} for --truth"
        raise click.UsageError(message)
    if not speed < math.inf:
        message = f"--speed is {speed}: must be a number from 0"
        raise click.UsageError(message)

    from streaming.cli.actions.simulate import simulate

    simulate(kafka, partitions, what, seed, speed, truth)
