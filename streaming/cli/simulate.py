"""``sds-monitor simulate``."""

from __future__ import annotations

import gc
import math
import time
from pathlib import Path

import click
from msgspec.structs import replace

from connectors.kafka.producer import write
from connectors.kafka.settings import FRAMES_TOPIC, InvalidTopic, KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import (
    UnknownScenario,
    UnreadableScenario,
    load_scenario,
    scenario_names,
)
from sds_core.simulation.scenario import LONGEST_S, Scenario
from sds_core.simulation.truth import Truth
from streaming.cli.kafka_options import kafka_options
from streaming.cli.log_option import log_option
from streaming.cli.output import told, wall_ms, write_json
from streaming.cli.settings import config_option, setting
from streaming.cli.signals import end_requested


@click.command(
    "simulate",
    epilog="Example: sds-monitor simulate --bootstrap localhost:9092 "
    "--scenario lossy --seed 7 --truth truth.json",
)
@config_option
@kafka_options()
@setting("--topic", default=FRAMES_TOPIC, help="Topic of frames; made if missing.")
@setting(
    "--partitions",
    type=click.IntRange(1, 1_000),
    default=4,
    help="Of the topic, if it is made.",
)
@setting(
    "--scenario",
    default="lossy",
    help=f"One of {', '.join(scenario_names())}, or a TOML file.",
)
@setting("--seed", type=click.IntRange(0), default=1, help="Decides all chance.")
@setting(
    "--duration",
    type=click.FloatRange(0, min_open=True),
    help="Seconds in which messages are sent; the scenario's own if left out.",
)
@setting(
    "--speed",
    type=click.FloatRange(0),
    default=1.0,
    help="Simulated seconds per second; 0 for as fast as it can.",
)
@setting(
    "--truth",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write here what really happened (JSON).",
)
@log_option()
def command(
    kafka: KafkaSettings,
    topic: str,
    partitions: int,
    scenario: str,
    seed: int,
    duration: float | None,
    speed: float,
    truth: Path | None,
) -> None:
    """Simulate SDS participants on a lossy network, mirrored into Kafka.

    Participants and taps are simulated; their frames are real ones. Faster than life,
    the traffic lies in the past and ends at about the time of the last writing.
    """
    # A hundred thousand small objects live long here, and few in cycles: looking for
    # them less often saves a fifth of the time.
    gc.set_threshold(100_000, 50, 1_000)
    what = read_scenario(scenario, duration)
    if truth is not None and not truth.parent.is_dir():
        message = f"there is no directory {truth.parent} for --truth"
        raise click.UsageError(message)
    if not speed < math.inf:
        message = f"--speed is {speed}: must be a number from 0"
        raise click.UsageError(message)
    try:
        partitions = ensure_frames_topic(kafka, partitions)
    except InvalidTopic as error:
        raise click.UsageError(str(error)) from error
    known = Truth(what.name, seed)
    start_ms = start_of(what, speed, wall_ms())
    records = simulated_records(what, seed, start_ms, partitions, known)
    takes = f"{what.total_ms / 1000 / speed:,.0f} s" if speed else "a while"
    click.echo(
        f"writing {what.total_ms / 1000:,.0f} s of scenario {what.name}, seed {seed}, "
        f"to {topic}; takes {takes}, Ctrl-C ends it"
    )
    begun_s = time.monotonic()
    with end_requested() as ending:
        written = write(told(records, "written"), kafka, speed, ending)
    click.echo(
        f"{written:,} records of scenario {what.name}, seed {seed}, "
        f"written to {topic} in {time.monotonic() - begun_s:.1f} s"
    )
    if truth is not None:
        write_json(known.document(), truth, "truth")


def read_scenario(name: str, duration_s: float | None = None) -> Scenario:
    """A scenario, of another duration if one is given.

    Raises:
        click.UsageError: There is none of this name, or it cannot be read.
    """
    try:
        what = load_scenario(name)
    except (UnknownScenario, UnreadableScenario) as error:
        raise click.UsageError(str(error)) from error
    if duration_s is None:
        return what
    if not duration_s <= LONGEST_S:
        message = f"--duration is {duration_s}: must be at most {LONGEST_S} s"
        raise click.UsageError(message)
    return replace(what, duration_s=duration_s)


def start_of(scenario: Scenario, speed: float, now_ms: int) -> int:
    """When a simulation is to begin, Unix ms, to end when its writing does.

    Slower than life it begins now: a record may not lie in the future. At a whole
    second, as some Lamport timestamps count seconds: the same seed is then the same.
    """
    takes_ms = round(scenario.total_ms / speed) if speed else 0
    start_ms = now_ms - max(0, scenario.total_ms - takes_ms)
    return start_ms // 1000 * 1000
